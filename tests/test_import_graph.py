"""The picture of the import graph shows the package as it is."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from scripts.import_graph import PICTURE, draw, listing, read_graph


def test_the_picture_is_current() -> None:
    drawn = next(one.text for one in ET.parse(PICTURE).iter() if one.tag.endswith("desc"))  # noqa: S314
    assert drawn == listing(read_graph()), "the imports have changed; run: make graph"


def test_the_picture_is_the_same_every_time() -> None:
    graph = read_graph()
    assert draw(graph) == draw(graph)
