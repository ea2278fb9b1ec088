"""One sample of all partitions from a sample of each."""

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

    A sample of `size` rows drawn from all rows together would hold a random number of each partition's, more of
    those that saw more. These numbers are drawn first (they are hypergeometric); then as many are chosen at random
    from each sample. What results is uniform if all samples are, and can be merged on: in whatever order
    partitions are merged, every set of rows is equally likely.

    Parameters
    ----------
    samples
        One a partition, with the number of rows that it was chosen from.
    size
        Rows wanted, no more than any sample holds that does not hold all it saw; by default as many as that allows.
    seed
        Fixes the draws. Merging what was merged before takes another seed.

    Examples
    --------
    >>> import numpy as np
    >>> many, few = Sample(9000, {"x": np.arange(100)}), Sample(1000, {"x": -np.arange(100)})
    >>> both = merge([many, few])
    >>> both.seen, len(both), int((both.columns["x"] > 0).sum())
    (10000, 100, 88)

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins leaves partitions aside; the reservoir of a query that
    runs in several is this merge of theirs.
    """
    if not samples:
        raise InputError("no samples to merge; give at least one")
    unready = next((sample for sample in samples if sample.refilling), None)
    if unready is not None:
        raise InputError(
            f"a reservoir that has grown is being refilled, from {unready.refilling} more rows, and until then no "
            "uniform sample; merge when it is"
        )
    names = {tuple(sorted(sample.columns)) for sample in samples if len(sample)}
    if len(names) > 1:
        raise InputError(f"the samples differ in their columns: {sorted(names)}; give all the same")
    seen = [sample.seen for sample in samples]
    most = min([sum(seen), *(len(sample) for sample in samples if len(sample) < sample.seen)])
    wanted = most if size is None else min(at_least_one(size, "size", "rows"), sum(seen))
    if wanted > most:
        raise InputError(
            f"size is {size}, but a sample holds only {most} of the rows that it saw; "
            f"ask for {most} at most, or let every partition hold {size}"
        )
    salted = salt_of(seed, 0)
    shares = _allocated(seen, wanted, salted)
    parts = [
        (sample, at_random(len(sample), share, derive_salt(salted, 1 + place)))
        for place, (sample, share) in enumerate(zip(samples, shares, strict=True))
        if share
    ]
    columns = {
        name: np.concatenate([sample.columns[name][rows] for sample, rows in parts])
        for name in (parts[0][0].columns if parts else samples[0].columns)
    }
    return Sample(sum(seen), columns)


def at_random(count: int, wanted: int, salted: int) -> Array:
    """Which of `count` rows are chosen, in order, any `wanted` as likely as any others."""
    return np.sort(np.argsort(draws(np.arange(count), salted), kind="stable")[:wanted])


def _allocated(seen: Sequence[int], wanted: int, salted: int) -> list[int]:
    """How many rows of each partition a uniform sample of all would hold."""
    shares, rest = [], sum(seen)
    for rows, draw in zip(seen, draws(np.arange(len(seen)), derive_salt(salted, 0)).tolist(), strict=True):
        rest -= rows
        share = weighted_choice(hypergeometric_weights(min(rows, wanted), rows, rest, wanted), draw)
        shares.append(share)
        wanted -= share
    return shares
