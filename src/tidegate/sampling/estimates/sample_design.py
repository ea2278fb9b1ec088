"""How each result came into a sample: its probability, and what it was drawn together with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

import numpy as np
import pyarrow as pa

from tidegate.streams.trace import one_chunk
from tidegate.types import Array, InputError, check_choice, first_missing

Method = Literal["uniform", "eq_cluster", "pps_cluster", "reservoir", "progressive"]
"""How `tidegate.sample` draws."""
Design = Literal[Method, "counted"]
"""How a sample that is to be estimated from was drawn."""
ALONE: Final = ("uniform", "reservoir", "progressive")
"""Where each result is drawn by itself, unless a column of numbers beside owners (`shown`) tells otherwise."""
_ROUNDED: Final = 1e-9


def listed(names: str | Sequence[str] | None) -> list[str]:
    """One name or several, as a list."""
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def column(table: pa.Table, name: str, option: str) -> pa.ChunkedArray:
    """A column of the sample, or a word on which there are."""
    absent = first_missing([name], table.column_names)
    if absent is not None:
        have = ", ".join(table.column_names) or "none"
        raise InputError(
            f"sample has no column {name!r} (its columns: {have}); name one of these with {option}="
        )
    return table.column(name)


@dataclass(frozen=True)
class GroupCodes:
    """Rows by the values of some columns: a code for each row, and for each code the first row that has it.

    Examples
    --------
    >>> GroupCodes.of([pa.chunked_array([["b", None, "b"]])], 3)
    GroupCodes(codes=array([0, 1, 0]), first=array([0, 1]))
    """

    codes: Array
    first: Array

    @classmethod
    def of(cls, columns: Sequence[pa.ChunkedArray], rows: int) -> Self:
        """Number what occurs; null is a value."""
        codes = np.zeros(rows, np.int64)
        count = 1
        for values in columns:
            plain = one_chunk(values)
            if pa.types.is_dictionary(plain.type):
                plain = plain.dictionary_decode()
            encoded = plain.dictionary_encode(null_encoding="encode")
            part = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            # Renumbering after each column keeps the product below 2**63 for any number of columns.
            codes = (
                part
                if count == 1
                else np.unique(codes * len(encoded.dictionary) + part, return_inverse=True)[1]
            )
            count = int(codes.max(initial=-1)) + 1
        first = np.zeros(min(count, rows), np.int64)
        first[codes[::-1]] = np.arange(rows)[::-1]
        return cls(codes, first)


@dataclass(frozen=True)
class SampleDesign:
    """How each result came into the sample.

    Parameters
    ----------
    probability
        That of its inclusion.
    unit
        The cluster or the reservoir of each; None where each was drawn by itself.
    reservoir
        How many results its reservoir holds; None for clusters.
    shown
        With what probability its cluster was in before some of its results were drawn; None where all of it is.
    """

    probability: Array
    unit: Array | None
    reservoir: Array | None
    shown: Array | None = None

    @classmethod
    def of(
        cls,
        table: pa.Table,
        method: Design | None,
        probability: str,
        owner: str | Sequence[str],
        stratum: str | Sequence[str] | None,
        shown: str = "shown",
    ) -> Self:
        """Read the columns that tell, and refuse what cannot be."""
        if method is not None:
            check_choice(method, Design, "method")
        chance = _probabilities(column(table, probability, "probability"), probability)
        if method == "counted":
            unit = GroupCodes.of(
                [column(table, name, "stratum") for name in listed(stratum)], table.num_rows
            ).codes
            return cls(chance, unit, _sizes(unit, chance))
        if stratum is not None:
            raise InputError(f"stratum={stratum!r} is for method='counted'; choose that, or leave it out")
        owners = listed(owner)
        owned = first_missing(owners, table.column_names) is None
        told = shown in table.column_names and pa.types.is_floating(table.schema.field(shown).type)
        clusters_shown = method in (None, *ALONE) and owned and told
        if (method in ALONE and not clusters_shown) or (method is None and not owned):
            return cls(chance, None, None)
        columns = [column(table, name, "owner") for name in owners]
        clusters = GroupCodes.of(columns, table.num_rows).codes
        for values in columns:
            if values.null_count:
                alone = np.flatnonzero(values.is_null().to_numpy())
                clusters[alone] = len(clusters) + alone
        if not clusters_shown:
            return cls(chance, clusters, None)
        return cls(chance, clusters, None, np.maximum(_probabilities(table.column(shown), shown), chance))


def _probabilities(values: pa.ChunkedArray, name: str) -> Array:
    try:
        chance: Array = values.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{name!r} is of type {values.type}; give numbers above 0, up to 1") from error
    bad = np.flatnonzero(~((chance > 0) & (chance <= 1 + _ROUNDED)))
    if len(bad):
        at = int(bad[0])
        raise InputError(
            f"{name!r} has {values[at].as_py()!r} at row {at}; give the probability with which each result came "
            "into the sample, above 0 and at most 1, or leave such rows out"
        )
    return np.minimum(chance, 1.0)


def _sizes(unit: Array, chance: Array) -> Array:
    """How many results each result's reservoir holds."""
    counts = np.bincount(unit)
    least, most = np.full(len(counts), np.inf), np.zeros(len(counts))
    np.minimum.at(least, unit, chance)
    np.maximum.at(most, unit, chance)
    mixed = np.flatnonzero(most > least * (1 + _ROUNDED))
    if len(mixed):
        raise InputError(
            f"one reservoir has results of probability {least[mixed[0]]:g} and {most[mixed[0]]:g}; where several "
            "were merged, name the column that tells them apart with stratum="
        )
    return counts[unit]
