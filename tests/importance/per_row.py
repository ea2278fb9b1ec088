"""Importance computed row by row in plain Python, as an oracle; None for a row that is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tidegate.importance import Categories, Column, Combined, Definition, Histogram, Sides, Source
from tidegate.types import Combine, Side

COMBINE: dict[Combine, Callable[[Any], float]] = {
    "min": min,
    "max": max,
    "sum": sum,
    "product": math.prod,
    "mean": lambda worths: sum(worths) / len(worths),
}


def importance_of(definition: Definition, side: Side, row: Mapping[str, Any]) -> float | None:  # noqa: PLR0911 - a kind each
    if isinstance(definition, Sides):
        return importance_of(
            Definition.of(definition.left if side == "left" else definition.right), side, row
        )
    if isinstance(definition, Source):
        return definition.left if side == "left" else definition.right
    if isinstance(definition, Combined):
        parts = [importance_of(Definition.of(part), side, row) for part in definition.definitions]
        return None if None in parts else COMBINE[definition.how](parts)
    if isinstance(definition, Column):
        value = row[definition.name]
        found = definition.default if value is None or math.isnan(value) else value
        return None if found is None or found < 0 or math.isinf(found) else float(found)
    if isinstance(definition, Categories):
        return definition.values.get(row[definition.column], definition.default)
    assert isinstance(definition, Histogram)
    value = row[definition.column]
    if value is not None:
        ends = list(zip(definition.edges, definition.edges[1:], definition.values, strict=False))
        for low, high, importance in ends:
            if low <= value < high:
                return importance
        if value == definition.edges[-1]:
            return definition.values[-1]
    return definition.default
