"""The design of a sample: the probability of each result, and which results were drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

import numpy as np
import pyarrow as pa

from tidegate.arrow_columns import one_chunk
from tidegate.types import Array, InputError, check_choice, first_missing

Method = Literal["uniform", "eq_cluster", "pps_cluster", "reservoir", "progressive"]
"""The methods of `tidegate.sample`."""
Design = Literal[Method, "counted"]
"""The designs that estimates can be made from."""
INDEPENDENT: Final = ("uniform", "reservoir", "progressive")
"""Designs in which each result is drawn independently, unless the column `shown` states otherwise."""
_ROUNDING: Final = 1e-9


def listed(names: str | Sequence[str] | None) -> list[str]:
    """One name or several, as a list."""
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def column(table: pa.Table, name: str, option: str) -> pa.ChunkedArray:
    """A column of the sample; an error lists the columns that exist."""
    absent = first_missing([name], table.column_names)
    if absent is not None:
        have = ", ".join(table.column_names) or "none"
        raise InputError(
            f"sample has no column {name!r} (its columns: {have}); name one of these with {option}="
        )
    return table.column(name)


@dataclass(frozen=True)
class GroupCodes:
    """Groups of rows by the values of some columns: the code of each row, and the first row of each code.

    Examples
    --------
    >>> GroupCodes.of([pa.chunked_array([["b", None, "b"]])], 3)
    GroupCodes(codes=array([0, 1, 0]), first=array([0, 1]))
    """

    codes: Array
    first: Array

    @classmethod
    def of(cls, columns: Sequence[pa.ChunkedArray], rows: int) -> Self:
        """Number the distinct values; null is a value."""
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
    """How each result of a sample was drawn.

    Parameters
    ----------
    probability
        The inclusion probability of each result.
    unit
        The cluster or the reservoir of each result; None if each was drawn independently.
    reservoir
        The number of results in the reservoir of each result; None for clusters.
    shown
        The probability with which the cluster of each result was drawn, if only some of its results were drawn in
        turn; None if all of them were.
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
        """Read the design from the columns of a sample; invalid columns are refused."""
        if method is not None:
            check_choice(method, Design, "method")
        inclusion = _probabilities(column(table, probability, "probability"), probability)
        if method == "counted":
            unit = GroupCodes.of(
                [column(table, name, "stratum") for name in listed(stratum)], table.num_rows
            ).codes
            return cls(inclusion, unit, _reservoir_sizes(unit, inclusion))
        if stratum is not None:
            raise InputError(f"stratum={stratum!r} needs method='counted'; set that, or remove stratum=")
        owners = listed(owner)
        has_owners = first_missing(owners, table.column_names) is None
        has_shown = shown in table.column_names and pa.types.is_floating(table.schema.field(shown).type)
        uses_shown = method in (None, *INDEPENDENT) and has_owners and has_shown
        if (method in INDEPENDENT and not uses_shown) or (method is None and not has_owners):
            return cls(inclusion, None, None)
        columns = [column(table, name, "owner") for name in owners]
        clusters = GroupCodes.of(columns, table.num_rows).codes
        for values in columns:
            if values.null_count:
                independent = np.flatnonzero(values.is_null().to_numpy())
                clusters[independent] = len(clusters) + independent
        if not uses_shown:
            return cls(inclusion, clusters, None)
        return cls(
            inclusion, clusters, None, np.maximum(_probabilities(table.column(shown), shown), inclusion)
        )


def _probabilities(values: pa.ChunkedArray, name: str) -> Array:
    try:
        probability: Array = values.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"{name!r} must have numbers above 0 and at most 1, but it is of type {values.type}"
        ) from error
    bad = np.flatnonzero(~((probability > 0) & (probability <= 1 + _ROUNDING)))
    if len(bad):
        at = int(bad[0])
        raise InputError(
            f"{name!r} must have inclusion probabilities above 0 and at most 1; got {values[at].as_py()!r} at row "
            f"{at}; correct or remove such rows"
        )
    return np.minimum(probability, 1.0)


def _reservoir_sizes(unit: Array, probability: Array) -> Array:
    """The number of results in the reservoir of each result."""
    counts = np.bincount(unit)
    lowest, highest = np.full(len(counts), np.inf), np.zeros(len(counts))
    np.minimum.at(lowest, unit, probability)
    np.maximum.at(highest, unit, probability)
    mixed = np.flatnonzero(highest > lowest * (1 + _ROUNDING))
    if len(mixed):
        raise InputError(
            f"a reservoir has results of probability {lowest[mixed[0]]:g} and {highest[mixed[0]]:g}; if several "
            "reservoirs were merged, name the column that identifies them with stratum="
        )
    return counts[unit]
