"""Work on all cores. A pool lives as long as a call, so that neither a fork nor another thread meets it half-used."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
State = TypeVar("State")


class Shared(Iterator[Item]):
    """Items of which every thread may take the next one."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._lock = threading.Lock()

    def __next__(self) -> Item:
        with self._lock:
            return next(self._items)


def on_each(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> list[Result]:
    """Work done on each item; the caller's thread takes part."""
    workers = min(workers, len(items))
    if workers <= 1:
        return [work(item) for item in items]
    results: dict[int, Result] = {}
    shared = Shared(enumerate(items))

    def take() -> None:
        for number, item in shared:
            results[number] = work(item)

    with ThreadPoolExecutor(workers - 1) as pool:
        others = [pool.submit(take) for _ in range(workers - 1)]
        take()
        for other in others:
            other.result()
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
