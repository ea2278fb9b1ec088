"""Merges samples of partitions into one sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.draws import derive_salt, draws
from tidegate.models.validation import at_least_one
from tidegate.sampling.reservoirs.distributions import hypergeometric_weights, weighted_choice
from tidegate.sampling.reservoirs.reservoir import salt_of
from tidegate.sampling.reservoirs.slots import Sample
from tidegate.types import Array, InputError


def merge(samples: Sequence[Sample], size: int | None = None, seed: int = 0) -> Sample:
    """Merge samples of disjoint sets of rows into a sample of all of them.

    In a sample of `size` rows of all partitions, the number of rows of each partition is random (hypergeometric).
    These numbers are drawn first; then as many rows are drawn from each sample. The result is uniform if all samples
    are. It can be merged again, in any order of partitions.

    Parameters
    ----------
    samples
        One sample for each partition.
    size
        The number of rows to return; by default the most that is possible. A sample that does not have all rows of
        its partition must have at least this number.
    seed
        Fixes the draws. To merge merged samples, use another seed.

    Examples
    --------
    >>> import numpy as np
    >>> many, few = Sample(9000, {"x": np.arange(100)}), Sample(1000, {"x": -np.arange(100)})
    >>> both = merge([many, few])
    >>> both.seen, len(both), int((both.columns["x"] > 0).sum())
    (10000, 100, 88)

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins does not treat partitions. The reservoir of a partitioned
    query is the merge of the reservoirs of its partitions.
    """
    if not samples:
        raise InputError("samples is empty; give at least one sample")
    unready = next((sample for sample in samples if sample.refilling), None)
    if unready is not None:
        raise InputError(
            f"a sample is not uniform while its reservoir is refilled; merge it after {unready.refilling} more rows"
        )
    names = {tuple(sorted(sample.columns)) for sample in samples if len(sample)}
    if len(names) > 1:
        raise InputError(f"all samples must have the same columns; got {sorted(names)}")
    seen = [sample.seen for sample in samples]
    most = min([sum(seen), *(len(sample) for sample in samples if len(sample) < sample.seen)])
    wanted = most if size is None else min(at_least_one(size, "size", "rows"), sum(seen))
    if wanted > most:
        raise InputError(f"size must be at most {most}, the rows of the smallest sample; got {size}")
    salted = salt_of(seed, 0)
    shares = _draw_shares(seen, wanted, salted)
    parts = [
        (sample, draw_rows(len(sample), share, derive_salt(salted, 1 + place)))
        for place, (sample, share) in enumerate(zip(samples, shares, strict=True))
        if share
    ]
    columns = {
        name: np.concatenate([sample.columns[name][rows] for sample, rows in parts])
        for name in (parts[0][0].columns if parts else samples[0].columns)
    }
    return Sample(sum(seen), columns)


def draw_rows(count: int, wanted: int, salted: int) -> Array:
    """Draw `wanted` of `count` rows at random; returns their positions in order."""
    return np.sort(np.argsort(draws(np.arange(count), salted), kind="stable")[:wanted])


def _draw_shares(seen: Sequence[int], wanted: int, salted: int) -> list[int]:
    """Draw the number of rows of each partition in a uniform sample of all."""
    shares, rest = [], sum(seen)
    for rows, draw in zip(seen, draws(np.arange(len(seen)), derive_salt(salted, 0)).tolist(), strict=True):
        rest -= rows
        share = weighted_choice(hypergeometric_weights(min(rows, wanted), rows, rest, wanted), draw)
        shares.append(share)
        wanted -= share
    return shares
