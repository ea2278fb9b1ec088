"""How the hot loops are compiled: once, kept on disk, and without holding the interpreter's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


def kernel(function: F) -> F:
    """Compile `function` at its first call with these types, or load what an earlier process compiled."""
    try:
        return cast("F", njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # no folder to keep it in: compile anew in each process
        return cast("F", njit(nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """Compile `function` into its callers: for small parts of a hot loop that pass many arrays along."""
    return cast("F", njit(inline="always", nogil=True, error_model="numpy")(function))


def unordered(function: F) -> F:
    """Compile a `function` that sees no NaN, so that it may compare many numbers in any order."""
    return cast("F", njit(nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})(function))
