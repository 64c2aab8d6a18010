"""A bar for long work, where a person looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def shown(
    items: Iterable[Item],
    what: str,
    total: int,
    *,
    progress: bool | None = None,
    size: Callable[[Item], int] | None = None,
) -> Iterator[Item]:
    """The items, with a bar where a person looks and rich is installed; it goes away when it is done.

    `size` tells how much of the total an item is, if not one.
    """
    if progress is False:
        yield from items
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield from items
        return
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not (progress or console.is_terminal)) as bar:
        task = bar.add_task(what, total=total)
        for item in items:
            yield item
            bar.advance(task, 1 if size is None else size(item))
