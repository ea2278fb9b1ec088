"""Join types, in all of Spark's spellings."""

from __future__ import annotations

from typing import Final, get_args

from tidegate.spark.bucket.join.plan import How
from tidegate.types import InputError, perhaps

_SPELLINGS: Final[dict[str, How]] = {
    "inner": "inner",
    "left": "left",
    "leftouter": "left",
    "right": "right",
    "rightouter": "right",
    "outer": "full",
    "full": "full",
    "fullouter": "full",
    "semi": "left_semi",
    "leftsemi": "left_semi",
    "anti": "left_anti",
    "leftanti": "left_anti",
}
_REFUSED: Final = {
    "cross": " (for all pairs within the window, join on a column with the same value in all rows)",
}


def parse_how(value: object, accepted: tuple[str, ...] = get_args(How)) -> How:
    """Parse a join type in any of Spark's spellings, and refuse one that is not accepted.

    Examples
    --------
    >>> parse_how("LEFT_OUTER"), parse_how("outer"), parse_how("anti")
    ('left', 'full', 'left_anti')
    """
    spelling = value.replace("_", "").lower() if isinstance(value, str) else ""
    if _SPELLINGS.get(spelling) in accepted:
        return _SPELLINGS[spelling]
    hint = _REFUSED.get(spelling, "") or perhaps(
        spelling, [name for name, how in _SPELLINGS.items() if how in accepted]
    )
    raise InputError(
        f"how={value!r} is not supported; use {', '.join(map(repr, accepted))}, or another of Spark's names for "
        f"these{hint}"
    )
