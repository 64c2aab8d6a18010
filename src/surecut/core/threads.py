"""Work on all cores. A pool lives as long as a call, so that neither a fork nor another thread meets it half-used.

`Background` is for work that nobody waits for.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
State = TypeVar("State")

LONGEST_PIECE = 20.0
"""So many seconds a fork waits for the background's work."""


class Shared(Iterator[Item]):
    """Items of which every thread may take the next one."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._lock = threading.Lock()

    def __next__(self) -> Item:
        with self._lock:
            return next(self._items)

    def end(self) -> None:
        """Leave the items that nobody has taken."""
        with self._lock:
            self._items = iter(())


def on_each(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> list[Result]:
    """Work done on each item; the caller's thread takes part. An error in one thread ends the work of all.

    Plain threads start in half the time of a pool's, which counts where the work takes less than a millisecond.
    """
    workers = min(workers, len(items))
    if workers <= 1:
        return [work(item) for item in items]
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    shared = Shared(enumerate(items))

    def take() -> None:
        try:
            for number, item in shared:
                results[number] = work(item)
        except BaseException as error:
            errors.append(error)
            shared.end()

    others = [threading.Thread(target=contextvars.copy_context().run, args=(take,)) for _ in range(workers - 1)]
    for other in others:
        other.start()
    take()
    for other in others:
        other.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]


def on_stream(
    stream: Iterable[Item], nothing: Callable[[], State], work: Callable[[State, Item], None], workers: int
) -> list[State]:
    """Work done on each item of a stream, few of which are in memory; each worker adds to a state of its own."""
    free = [nothing() for _ in range(workers)]
    states = list(free)

    def run(item: Item) -> None:
        state = free.pop()
        try:
            work(state, item)
        finally:
            free.append(state)

    if workers == 1:
        for item in stream:
            run(item)
        return states
    with ThreadPoolExecutor(workers) as pool:
        pending: deque[Future[None]] = deque()
        try:
            for item in stream:
                if len(pending) > 2 * workers:
                    pending.popleft().result()
                pending.append(pool.submit(run, item))
            for future in pending:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return states


class Background:
    """Pieces of work that a thread of its own does, one after the other, while nobody waits for them.

    A process ends when the piece under way is done; later ones are dropped. So it is forked, too: whatever a piece
    holds locked, an import above all, would stay locked in the child, which has no such thread. Should a piece itself
    wait for the thread that forks, the wait has an end, and `is_possible` is false in the child.
    """

    def __init__(self) -> None:
        self._pieces: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._working = threading.RLock()
        self.is_possible = True
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._begin_again
            )

    def submit(self, piece: Callable[[], object]) -> None:
        """Have something done; exceptions are dropped."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="surecut-background", daemon=True)
                self._thread.start()
                atexit.register(self._end)
        self._pieces.put(piece)

    def _run(self) -> None:
        while (piece := self._pieces.get()) is not None and self.is_possible:
            with self._working, contextlib.suppress(Exception):
                piece()

    def _end(self) -> None:
        self.is_possible = False
        self._pieces.put(None)
        if self._thread is not None:
            self._thread.join()

    def _before_fork(self) -> None:
        self._working.acquire(timeout=LONGEST_PIECE)

    def _after_fork(self) -> bool:
        """Let the work go on; returns whether it stood still."""
        try:
            self._working.release()
        except RuntimeError:  # the wait was too long
            return False
        return True

    def _begin_again(self) -> None:
        self.is_possible = self._after_fork() and self.is_possible
        self._thread = None
        self._pieces, self._starting, self._working = queue.SimpleQueue(), threading.Lock(), threading.RLock()
