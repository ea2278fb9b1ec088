"""A table of a paper, as this code makes it, and what the paper says of it."""

from typing import NamedTuple

from tidegate.experiments.claims import Claim


class Reproduced(NamedTuple):
    """What `tidegate reproduce` prints, and the picture that it draws, if any, as SVG."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    claims: tuple[Claim, ...] = ()
    picture: str | None = None
