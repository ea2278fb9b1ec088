"""Which code a cell runs: results of other code are not taken for those of this one."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

_ROOM: Final = "tidegate.experiments"
_IMPORTS: Final = re.compile(rf"^from ({re.escape(_ROOM)}(?:\.\w+)+) import", re.MULTILINE)
_APART: Final = ("experiments", "spark", "dashboard", "cli.py", "__main__.py")
"""What does not touch what a cell measures."""


def code_of(measure: Callable[..., object]) -> str:
    """A digest of the core and of the modules of experiments that a cell function is made of.

    Examples
    --------
    >>> from tidegate.experiments.windowed_joins.measured import aged
    >>> len(code_of(aged))
    16
    """
    digest = hashlib.sha256(_core())
    modules, seen = [measure.__module__], set[str]()
    while modules:
        name = modules.pop()
        file = getattr(sys.modules.get(name), "__file__", None)
        if name in seen or file is None:
            continue
        seen.add(name)
        source = Path(file).read_bytes()
        digest.update(source)
        modules += sorted(_IMPORTS.findall(source.decode()))
    return digest.hexdigest()[:16]


@cache
def _core() -> bytes:
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _APART:
            digest.update(path.read_bytes())
    return digest.digest()
