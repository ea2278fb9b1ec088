"""The files of a checkpoint, in any file system that Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_classic(session: SparkSession) -> bool:
    """Whether the session runs in this process' Java, and not behind Spark Connect."""
    return getattr(session, "sparkContext", None) is not None


class CheckpointFiles:
    """The files below a folder; names are relative to it.

    Parameters
    ----------
    root
        The folder, which need not exist.
    session
        A classic session.
    """

    def __init__(self, root: str | Path, session: SparkSession) -> None:
        self._jvm = cast("Any", session.sparkContext._jvm)  # noqa: SLF001 - no other way
        self._configuration = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - as above
        self._root = self._jvm.org.apache.hadoop.fs.Path(str(root))
        self._files = self._root.getFileSystem(self._configuration)

    def exists(self, name: str = "") -> bool:
        """Whether there is a file or folder of this name."""
        return bool(self._files.exists(self._path(name)))

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder; none if it does not exist."""
        if not self.exists(folder):
            return []
        return sorted(
            str(status.getPath().getName()) for status in self._files.listStatus(self._path(folder))
        )

    def numbers(self, folder: str) -> list[int]:
        """The names in a folder that are numbers, in order."""
        return sorted(int(name) for name in self.names(folder) if name.isdigit())

    def read(self, name: str) -> bytes:
        """The content of a file."""
        stream = self._files.open(self._path(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        stream = self._files.create(self._path(name))
        try:
            stream.write(content)
        finally:
            stream.close()

    def rename(self, name: str, new: str) -> None:
        """Rename a file."""
        if not self._files.rename(self._path(name), self._path(new)):
            raise OSError(f"{name!r} cannot be renamed to {new!r} in {self._root}")

    def delete(self, name: str = "") -> None:
        """Delete a file, or a folder with all that it contains."""
        self._files.delete(self._path(name), True)  # noqa: FBT003 - Java's

    def copy(self, name: str, source: CheckpointFiles) -> None:
        """Copy a file or folder of another checkpoint, if it is there."""
        if source.exists(name):
            util = self._jvm.org.apache.hadoop.fs.FileUtil
            util.copy(
                source._files,
                source._path(name),
                self._files,
                self._path(name),
                False,  # noqa: FBT003 - Java's
                self._configuration,
            )

    def _path(self, name: str) -> Any:  # noqa: ANN401 - Java's
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name) if name else self._root
