"""Pictures as PNG, with the extra `pictures`: it brings its own renderer, and uses the fonts of the machine."""

from __future__ import annotations

import importlib
from typing import Any


def png(svg: str) -> bytes | None:
    """A picture as PNG, twice as large as it says; None where nothing is installed that can draw it."""
    try:
        renderer: Any = importlib.import_module("resvg_py")
    except ModuleNotFoundError:
        return None
    return bytes(renderer.svg_to_bytes(svg_string=svg, zoom=2))
