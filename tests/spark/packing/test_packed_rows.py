"""Packing keeps all rows unchanged, and puts each in the bucket of its key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.spark.packing import row_packer
from tidegate.spark.packing.arrow_bytes import from_bytes, to_bytes
from tidegate.spark.packing.buckets import bucket_of, labels
from tidegate.spark.packing.packed_rows import unpack
from tidegate.spark.packing.row_packer import RowPacker

Rows = list[tuple[int | None, int]]
ROWS: st.SearchStrategy[Rows] = st.lists(
    st.tuples(st.none() | st.integers(-(2**63), 2**63 - 1), st.integers(0, 99))
)


def batch(rows: Rows) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "k": pa.array([row[0] for row in rows], pa.int64()),
            "h": pa.array([row[1] * 7_919 for row in rows], pa.int64()),
            "c0": pa.array([str(row) for row in rows], pa.string()),
        }
    )


def packed(pack: RowPacker, batches: list[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.Table | None]]:
    for found in pack(iter(batches)):
        for row in found.to_pylist():
            yield row["bucket"], row["side"], from_bytes(row["payload"]) if row["payload"] else None


@given(st.lists(ROWS, max_size=4), st.integers(1, 9), st.sampled_from([0, 1]))
def test_every_row_is_in_the_bucket_of_its_key_once(parts: list[Rows], buckets: int, side: int) -> None:
    seen: list[str] = []
    for label, number, rows in packed(RowPacker(side, buckets, "k"), [batch(rows) for rows in parts]):
        assert number == side
        if rows is not None:
            keys = rows.column("k").fill_null(0).to_numpy()
            by_content = rows.column("h").to_numpy()
            deciding = np.where(rows.column("k").is_null().to_numpy(), by_content, keys).astype(np.int64)
            assert {labels(buckets)[b] for b in bucket_of(deciding, buckets)} == {label}
            seen += rows.column("c0").to_pylist()
    assert sorted(seen) == sorted(str(row) for rows in parts for row in rows)


@given(st.lists(ROWS, max_size=3), st.integers(1, 9))
def test_every_bucket_hears_of_every_micro_batch(parts: list[Rows], buckets: int) -> None:
    heard = [label for label, _, _ in packed(RowPacker(0, buckets, "k"), [batch(rows) for rows in parts])]
    assert set(heard) == set(labels(buckets))


def test_without_a_deciding_column_all_go_to_the_first() -> None:
    found = [
        (label, rows)
        for label, _, rows in packed(RowPacker(1, 1, None), [batch([(1, 1), (None, 2)])])
        if rows
    ]
    assert [(label, rows.num_rows) for label, rows in found] == [(labels(1)[0], 2)]


def test_packs_are_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_packer, "_ROWS_A_PACK", 100)
    batches = [batch([(i, i) for i in range(60)])] * 10
    sizes = [rows.num_rows for _, _, rows in packed(RowPacker(0, 1, "k"), batches) if rows]
    assert sum(sizes) == 600
    assert max(sizes) <= 160


def test_many_bytes_are_not_held_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_packer, "_BYTES_A_PACK", 1_000)
    wide = [batch([(i, i)]).set_column(2, "c0", pa.array(["x" * 600])) for i in range(6)]
    assert len([rows for _, _, rows in packed(RowPacker(0, 1, "k"), wide) if rows]) >= 3


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_results_are_unpacked_in_order(parts: list[Rows]) -> None:
    sent = [batch(rows) for rows in parts]
    payload = pa.record_batch([pa.array([to_bytes(b) for b in sent], pa.binary())], ["payload"])
    received: list[dict[str, Any]] = [row for b in unpack(iter([payload])) for row in b.to_pylist()]
    assert received == [row for b in sent for row in b.to_pylist()]


def test_a_slice_is_packed_without_what_it_was_cut_from() -> None:
    large = pa.Table.from_batches([batch([(i, i) for i in range(10_000)])])
    assert len(to_bytes(large.slice(5, 1))) < 2_000


def test_a_wide_batch_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_packer, "_BYTES_A_PACK", 1_000)
    wide = batch([(n, n) for n in range(1_000)])
    found = list(packed(RowPacker(0, 1, None), [wide]))
    tables = [rows for _, _, rows in found if rows is not None]
    assert max(rows.nbytes for rows in tables) < 2_000
    assert pa.concat_tables(tables).equals(pa.Table.from_batches([wide]))
