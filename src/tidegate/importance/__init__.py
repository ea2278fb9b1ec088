"""Definitions of the importance of rows, evaluated on columns."""

from tidegate.importance.attributes import Categories, Column, Expression, Histogram, Source
from tidegate.importance.combined import Combined, Sides
from tidegate.importance.definition import Attributes, Definition, DefinitionLike, evaluate_importance
from tidegate.importance.definition_file import DefinitionFile, FileContent

__all__ = [
    "Attributes",
    "Categories",
    "Column",
    "Combined",
    "Definition",
    "DefinitionFile",
    "DefinitionLike",
    "Expression",
    "FileContent",
    "Histogram",
    "Sides",
    "Source",
    "evaluate_importance",
]
