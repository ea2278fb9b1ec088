"""The number of buckets of a query."""

from __future__ import annotations

from typing import Final

from tidegate.types import InputError

DEFAULT_MAX_BUCKETS: Final = 64
"""The largest number of buckets of a query, unless the user gives a number."""
_MAX_BUCKETS: Final = 4096


def bucket_count(buckets: int | None, partitions: int) -> int:
    """The number of buckets of a query: `buckets` if given, otherwise the number of partitions."""
    if buckets is None:
        return min(partitions, DEFAULT_MAX_BUCKETS)
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= _MAX_BUCKETS:
        raise InputError(
            f"buckets={buckets!r} is not a number of buckets; give an integer from 1 to {_MAX_BUCKETS}"
        )
    return buckets
