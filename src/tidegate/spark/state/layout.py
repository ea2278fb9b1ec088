"""The layout of a saved state: which operator wrote it, and whether a query may continue from it."""

from __future__ import annotations

from typing import Any, Final

from tidegate.types import InputError

NAME: Final = "tidegate"
"""The default name of a join."""


def name_of(layout: dict[str, Any]) -> str:
    """The name of the join that saved a state."""
    return str(layout.get("name", NAME))


def check_name(name: object) -> str:
    """Check the name of a join, and return it."""
    if not isinstance(name, str) or not name:
        raise InputError(f"name={name!r} is not a name; give a string such as 'bids'")
    return name


def check_owner(saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse to continue from the state of another join of the query."""
    if name_of(saved) not in (NAME, name_of(wanted)):
        # Spark identifies operators by their order in the query, which may have changed.
        raise InputError(
            f"the checkpoint has the state of {name_of(saved)!r} where the query now has {name_of(wanted)!r}; "
            "restore the order and the names of the query's joins, or start with a new checkpointLocation"
        )


def check_layout(saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse to continue from a state that another query wrote, and name what differs."""
    check_owner(saved, wanted)
    for name, value in wanted.items():
        if name == "name":
            continue
        if saved.get(name) != value:
            raise InputError(
                f"the checkpoint was written with {name}={saved.get(name)!r}, the query now has {value!r}; "
                f"change it back, or start with a new checkpointLocation"
            )
