"""A function that numba compiles, for each kind of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from surecut.core.kernels import LOADING


class Kernel:
    """A compiled function whose cache on disk may be absent, unwritable or broken: then there is no cache.

    It is compiled, or read from the cache, for every kind of arguments: when it is called, or in the background.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._ready: set[tuple[Any, ...]] = set()
        self._asked: set[tuple[Any, ...]] = set()
        try:
            self._compiled = numba.njit(nogil=True, cache=True)(function)
        except RuntimeError:  # no place to write a cache
            self._compiled = numba.njit(nogil=True)(function)

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self._compiled(*arguments)
        except Exception:  # the kernels raise nothing: what fails is the reading or writing of the cache
            self._compiled = numba.njit(nogil=True)(self._function)
            return self._compiled(*arguments)

    def is_ready(self, kind: tuple[Any, ...], prepare: Callable[[], Any]) -> bool:
        """Whether it can be called with arguments of a kind without waiting.

        If not, it will be: `prepare` gives arguments of the kind with which it has nothing to do, but to be compiled.
        """
        if kind in self._ready:
            return True
        if kind not in self._asked and LOADING.background.is_possible:
            self._asked.add(kind)
            arguments = prepare()
            LOADING.background.submit(lambda: self._compile(kind, arguments))
        return False

    def _compile(self, kind: tuple[Any, ...], arguments: tuple[Any, ...]) -> None:
        self(*arguments)
        self._ready.add(kind)


def kind_of(*columns: Any) -> tuple[Any, ...]:
    """What kernels are compiled for."""
    return tuple(None if column is None else (column.dtype, column.flags.writeable) for column in columns)


def without_rows(*columns: Any) -> list[Any]:
    """Columns of the same kind without rows."""
    return [None if column is None else column[:0] for column in columns]
