"""Packages whose public names are loaded on first use.

`import tidegate` must be cheap, and a Python worker of Spark must import only what its task needs. So the
`__init__.py` of a large package imports its public names for type checkers only, and Python imports a module when one
of its names is first used.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Protocol, cast


def load_on_first_use(
    package: str, missing: Callable[[str, ModuleNotFoundError], None] = lambda _, __: None
) -> list[str]:
    """Let a package load its public names on first use. Returns the names, for its `__all__`.

    The public names are those that its `if TYPE_CHECKING:` block imports; `from x import y as y` also tells type
    checkers that y is public.

    A public name is kept if a module has the same name: Python binds an imported module to its package,
    so after `import tidegate.engine.simulate` the function `tidegate.engine.simulate` would be hidden by the module.

    Parameters
    ----------
    package
        The package, by its `__name__`.
    missing
        Called with the module of a public name and the error where a module is not installed. It may raise a clearer
        error.

    Examples
    --------
    >>> import tidegate.streams
    >>> tidegate.streams.Zipf
    <class 'tidegate.streams.zipf.Zipf'>
    """
    module = sys.modules[package]
    loader = cast("_SourceLoader", module.__loader__)
    modules = _public_names(loader.get_source(package))

    class LazyPackage(ModuleType):
        def __getattr__(self, name: str) -> object:
            if name not in modules:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            where = modules[name]
            try:
                if where == package:
                    return importlib.import_module(f"{package}.{name}")
                value = getattr(importlib.import_module(where), name)
            except ModuleNotFoundError as error:
                missing(f"{where}.{name}", error)
                raise
            self.__dict__[name] = value
            return value

        def __setattr__(self, name: str, value: object) -> None:
            hides = isinstance(value, ModuleType) and modules.get(name, package) != package
            if not hides:
                super().__setattr__(name, value)

        def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
            # A function that is sent to Spark's workers may use the package.
            return importlib.import_module, (package,)

        def __dir__(self) -> list[str]:
            return sorted(modules)

    module.__class__ = LazyPackage
    return sorted(modules)


class _SourceLoader(Protocol):
    """Python's loaders of source files, in a folder or in a zip file."""

    def get_source(self, fullname: str, /) -> str: ...


def _public_names(source: str) -> dict[str, str]:
    """The names that `if TYPE_CHECKING:` imports, and the module of each."""
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    return {
        imported.name: node.module or ""
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for imported in node.names
    }
