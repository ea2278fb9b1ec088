"""The aggregates that can be estimated, written as in SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

from tidegate.types import InputError

Kind = Literal["count", "sum", "avg", "quantile"]

_CALL: Final = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_ALIASES: Final = {"mean": "avg", "percentile": "quantile"}
_HINT: Final = "write count(*), count(x), sum(x), avg(x), median(x) or quantile(x, 0.9)"


@dataclass(frozen=True)
class Aggregate:
    """A count, a sum, an average or a quantile of a column.

    Parameters
    ----------
    kind
        The function.
    of
        The column, or on Spark an expression; None for `count(*)`.
    q
        The quantile, between 0 and 1.

    Examples
    --------
    >>> Aggregate.parse("avg(price)")
    Aggregate(kind='avg', of='price', q=0.5)
    >>> Aggregate.parse("percentile(greatest(bid, 0), 0.9)")
    Aggregate(kind='quantile', of='greatest(bid, 0)', q=0.9)
    >>> Aggregate.parse("count(*)")
    Aggregate(kind='count', of=None, q=0.5)
    """

    kind: Kind
    of: str | None
    q: float = 0.5

    @classmethod
    def parse(cls, text: str) -> Aggregate:
        """Parse a text such as `avg(price)`."""
        call = _CALL.fullmatch(text) if isinstance(text, str) else None
        if call is None or not _balanced(call[2]):
            raise InputError(f"{text!r} is not one aggregate; {_HINT}")
        name, inside = call[1].lower(), call[2].strip()
        name = _ALIASES.get(name, name)
        q = "0.5"
        if name == "median":
            name = "quantile"
        elif name == "quantile":
            inside, comma, q = inside.rpartition(",")
            if not comma:
                raise InputError(f"{text!r} needs a fraction as second argument; write quantile(x, 0.9)")
        if name not in get_args(Kind):
            raise InputError(f"{call[1]!r} in {text!r} is not an aggregate that can be estimated; {_HINT}")
        if re.match(r"distinct\b", inside, re.IGNORECASE):
            raise InputError(f"{text!r}: DISTINCT cannot be estimated from a sample; remove it")
        if not inside.strip() or (inside == "*" and name != "count"):
            raise InputError(f"{text!r} needs a column; {_HINT}")
        column = None if inside == "*" else inside.strip()
        return cls(name, column, _fraction(q, text))  # type: ignore[arg-type] # checked above


def _fraction(q: str, text: str) -> float:
    try:
        value = float(q)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(
            f"{q.strip()!r} in {text!r} is not a fraction; give one between 0 and 1, such as 0.9"
        )
    return value


def _balanced(text: str) -> bool:
    """Whether no parenthesis of `text` closes one that was opened before it."""
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0
