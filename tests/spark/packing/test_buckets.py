"""Buckets are distributed evenly over partitions, and rows over buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tidegate.spark.packing.buckets import bucket_of, labels, spark_hash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("buckets", [1, 2, 3, 7, 16, 64, 840, 1000, 2000])
@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 15, 20, 24])
def test_labels_spread_evenly(buckets: int, partitions: int) -> None:
    found = labels(buckets)
    assert len(set(found)) == buckets
    spots = spark_hash(np.array(found)).astype(np.int64) % partitions
    assert spots.tolist() == [i % partitions for i in range(buckets)]


def test_labels_depend_on_the_number_of_buckets_alone() -> None:
    assert labels(8) == labels(16)[:8]
    labels.cache_clear()
    assert labels(4) == labels(8)[:4]


@pytest.mark.spark
def test_the_hash_is_sparks(spark: SparkSession) -> None:
    values = [0, 1, -1, 2, 42, 2**31 - 1, -(2**31), 123_456_789]
    frame = spark.createDataFrame([(v,) for v in values], "v int").selectExpr("hash(v) as h")
    assert spark_hash(np.array(values)).tolist() == [row.h for row in frame.collect()]


@pytest.mark.parametrize("buckets", [1, 2, 7, 64])
@pytest.mark.parametrize("keys", [np.arange(20_000), np.arange(20_000) * 64, np.arange(20_000) << 40])
def test_keys_spread_over_buckets(keys: np.ndarray[tuple[int], np.dtype[np.int64]], buckets: int) -> None:
    sizes = np.bincount(bucket_of(keys.astype(np.int64), buckets), minlength=buckets)
    assert len(sizes) == buckets
    assert sizes.max() <= 1.3 * len(keys) / buckets


def test_equal_keys_share_a_bucket() -> None:
    keys = np.array([5, -3, 5, 2**63 - 1, -(2**63), -3], np.int64)
    found = bucket_of(keys, 16)
    assert found[0] == found[2]
    assert found[1] == found[5]
    assert (found < 16).all()


def test_rows_of_one_bucket_still_spread_in_the_index() -> None:
    keys = np.arange(100_000, dtype=np.int64)
    mine = keys[bucket_of(keys, 64) == 3]
    assert len(np.unique(bucket_of(mine, 63))) > 50
