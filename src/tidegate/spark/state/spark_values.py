"""The values of a bucket in Spark's state store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

CHUNKS: Final = "chunks"
"""The state variable with a bucket's values."""
NAME_SCHEMA: Final = "name string"
CHUNK_SCHEMA: Final = "payload binary"


class SparkValueStore:
    """The values of the bucket that Spark is processing."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState(CHUNKS, NAME_SCHEMA, CHUNK_SCHEMA)

    def get(self, name: str) -> bytes | None:
        """The value of this name, if there is one."""
        value = self._state.getValue((name,))
        return None if value is None else bytes(value[0])

    def put(self, name: str, value: bytes) -> None:
        """Set a value."""
        self._state.updateValue((name,), (value,))

    def remove(self, name: str) -> None:
        """Remove a value."""
        self._state.removeKey((name,))
