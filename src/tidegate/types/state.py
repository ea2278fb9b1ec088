"""The state of a part of a join, as named arrays."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.types.window import Array


def as_part(name: str, state: Mapping[str, Array]) -> dict[str, Array]:
    """A snapshot as part of a larger one: its arrays by names that `parts_of` separates."""
    return {f"{name}.{each}": array for each, array in state.items()}


def parts_of(state: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Split a snapshot into its parts, whose names are before the dots.

    Examples
    --------
    >>> import numpy as np
    >>> rate = {"left": np.array([1]), "right": np.array([2])}
    >>> parts_of({"clock": np.array([3])} | as_part("rate", rate))
    {'clock': {'': array([3])}, 'rate': {'left': array([1]), 'right': array([2])}}
    """
    parts: dict[str, dict[str, Array]] = {}
    for name, array in state.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = array
    return parts
