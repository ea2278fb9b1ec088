"""Keys of any type as 64-bit integers, for models that count by integer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.compiled import kernel
from tidegate.draws import mix

if TYPE_CHECKING:
    from tidegate.types import Array


def key_codes(keys: pa.Array) -> Array:
    """Whole numbers, dates and times as they are; anything else hashed, so that two keys may share a code.

    Examples
    --------
    >>> key_codes(pa.array([7, -7]))
    array([ 7, -7])
    >>> len(set(key_codes(pa.array(["a", "b", "ab", "ba", ""]))))
    5
    """
    kind = keys.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        codes: Array = keys.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return codes
    if pa.types.is_date32(kind):
        return key_codes(keys.view(pa.int32()))
    if pa.types.is_timestamp(kind):
        return key_codes(keys.view(pa.int64()))
    if pa.types.is_decimal(kind):
        return key_codes(keys.cast(pa.string()))
    wide = keys.cast(pa.large_binary())
    _, offsets, data = wide.buffers()
    ends = (
        np.frombuffer(offsets, np.int64)[wide.offset :][: len(wide) + 1]
        if len(wide)
        else np.zeros(1, np.int64)
    )
    values = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    hashed: Array = mix(_hashed(ends, values)).view(np.int64)
    return hashed


@kernel
def _hashed(ends: Array, values: Array) -> Array:
    """A hash of each run of bytes (FNV-1a)."""
    hashes = np.empty(len(ends) - 1, np.uint64)
    for i in range(len(hashes)):
        h = np.uint64(0xCBF29CE484222325)
        for at in range(ends[i], ends[i + 1]):
            h = (h ^ np.uint64(values[at])) * np.uint64(0x100000001B3)
        hashes[i] = h
    return hashes
