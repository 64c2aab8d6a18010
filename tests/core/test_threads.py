"""Work on all cores, and work that nobody waits for."""

from __future__ import annotations

import os
import threading
import time

import pytest

from surecut.core import threads
from surecut.core.threads import Background, on_each

SUBMIT = Background.submit


@pytest.fixture(autouse=True)
def in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests have everything done at once."""
    monkeypatch.setattr(Background, "submit", SUBMIT)


def fork_while(background: Background, lock: threading.Lock, work: float) -> tuple[bool, bool]:
    """Fork while a piece of work holds a lock; whether the lock is free in the child, and the background possible."""
    begun = threading.Event()

    def piece() -> None:
        with lock:
            begun.set()
            time.sleep(work)

    background.submit(piece)
    assert begun.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(lock.acquire(blocking=False) + 2 * background.is_possible)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return bool(code & 1), bool(code & 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_process_is_forked_when_the_work_under_way_is_done():
    """As an import is: of a module that is locked, the child would wait for ever."""
    background, lock = Background(), threading.Lock()
    assert fork_while(background, lock, 0.5) == (True, True)
    assert fork_while(background, lock, 0.01) == (True, True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_fork_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(threads, "LONGEST_PIECE", 0.01)
    assert fork_while(Background(), threading.Lock(), 1.0) == (False, False)


def test_work_is_done_on_each_item_by_all_threads() -> None:
    seen: set[int] = set()
    together = threading.Barrier(3)

    def work(item: int) -> int:
        if item < 3:
            together.wait(60)  # three threads have one of the first three items each
        seen.add(threading.get_ident())
        return item * item

    assert on_each(work, range(20), 3) == [item * item for item in range(20)]
    assert len(seen) == 3
    assert on_each(work, [4], 8) == [16]


@pytest.mark.parametrize("in_caller", [True, False])
def test_an_error_in_one_thread_ends_the_work_of_all(in_caller: bool) -> None:
    done: list[int] = []
    caller, failed = threading.get_ident(), threading.Event()

    def work(item: int) -> None:
        if item < 2 and (threading.get_ident() == caller) == in_caller:
            failed.set()
            raise KeyError(item)
        assert failed.wait(60)
        time.sleep(0.05)
        done.append(item)

    with pytest.raises(KeyError):
        on_each(work, range(1000), 2)
    assert len(done) < 100
