"""A table of a paper, as this code makes it."""

from typing import NamedTuple


class Reproduced(NamedTuple):
    """What `tidegate reproduce` prints."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
