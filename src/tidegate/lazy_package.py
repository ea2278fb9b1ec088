"""Packages whose public names are loaded on first use.

`import tidegate` must be cheap, and a Python worker of Spark must import only what its task needs. So the
`__init__.py` of a large package lists its public names and where they are defined, and Python imports that module
when a name is first used.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType


def load_on_first_use(
    package: str,
    modules: Mapping[str, str],
    missing: Callable[[str, ModuleNotFoundError], None] = lambda _, __: None,
) -> None:
    """Let a package load its public names on first use.

    A public name is kept if a module has the same name: Python binds an imported module to its package,
    so after `import tidegate.engine.simulate` the function `tidegate.engine.simulate` would be hidden by the module.

    Parameters
    ----------
    package
        The package, by its `__name__`.
    modules
        The module that defines each public name, relative to the package; ".x" for the module x itself.
    missing
        Called with the public name and the error where a module is not installed. It may raise a clearer error.

    Examples
    --------
    >>> import tidegate.streams
    >>> tidegate.streams.Zipf
    <class 'tidegate.streams.zipf.Zipf'>
    """

    class LazyPackage(ModuleType):
        def __getattr__(self, name: str) -> object:
            if name not in modules:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            where = modules[name]
            try:
                if where.startswith("."):
                    return importlib.import_module(package + where)
                value = getattr(importlib.import_module(f"{package}.{where}"), name)
            except ModuleNotFoundError as error:
                missing(name, error)
                raise
            self.__dict__[name] = value
            return value

        def __setattr__(self, name: str, value: object) -> None:
            hides = isinstance(value, ModuleType) and not modules.get(name, ".").startswith(".")
            if not hides:
                super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*self.__dict__, *modules})

    sys.modules[package].__class__ = LazyPackage
