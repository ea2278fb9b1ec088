"""Compilation of hot loops: once, cached on disk, and without the interpreter lock."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from numba import njit
from numba.core.compiler_lock import global_compiler_lock

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


def kernel(function: F) -> F:
    """Compile `function` at its first call with these types, or load the version that another process compiled.

    Processes that need the same kernel at the same time, such as all workers of a query that starts, wait for the
    first of them and load its version.
    """
    try:
        compiled = njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no folder for the cache: each process compiles
        return cast("F", njit(nogil=True, error_model="numpy")(function))
    return cast("F", _one_process_at_a_time(compiled, function.__code__.co_filename))


def inlined(function: F) -> F:
    """Compile `function` into its callers, for small functions of a hot loop with many array arguments."""
    return cast("F", njit(inline="always", nogil=True, error_model="numpy")(function))


def unordered(function: F) -> F:
    """Compile a `function` that never gets NaN, so that comparisons may be reordered."""
    return cast("F", njit(nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})(function))


def _one_process_at_a_time(dispatcher: Any, source: str) -> Any:  # noqa: ANN401 - Numba has no types
    """Compile or load `dispatcher` while no other process does so with a kernel of the same source file."""
    load_or_compile = dispatcher.compile

    def compile_locked(signature: object) -> object:
        # The lock of this process first: its holder may need the source file next. Modules import each other in one
        # direction, and so do the kernels that a kernel calls: two processes never wait for each other.
        with global_compiler_lock, _locked(source):
            return load_or_compile(signature)

    dispatcher.compile = compile_locked
    return dispatcher


_locked_files: set[str] = set()
"""Source files that this process has locked; a kernel may call others of its own file."""


@contextlib.contextmanager
def _locked(source: str) -> Iterator[None]:
    if source in _locked_files:
        yield
        return
    with contextlib.ExitStack() as stack:
        # Where a file cannot be locked, each process compiles.
        with contextlib.suppress(ImportError, OSError):
            import fcntl  # noqa: PLC0415 - not on Windows

            descriptor = os.open(source, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        _locked_files.add(source)
        stack.callback(_locked_files.discard, source)
        yield
