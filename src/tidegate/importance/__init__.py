"""What a row is worth, as the user states it: frozen definitions that are evaluated on columns."""

from tidegate.importance.attributes import Categories, Column, Expression, Histogram, Source
from tidegate.importance.combined import Combined, Sides
from tidegate.importance.definition import Attributes, Definition, Stated, valued
from tidegate.importance.watched import Content, Watched

__all__ = [
    "Attributes",
    "Categories",
    "Column",
    "Combined",
    "Content",
    "Definition",
    "Expression",
    "Histogram",
    "Sides",
    "Source",
    "Stated",
    "Watched",
    "valued",
]
