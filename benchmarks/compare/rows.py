"""What is compared: rows, each of them something that can be measured over and over on one side.

Sizes are fixed, so that both sides do the same work, and small, so that a pair takes a second or
two and both halves meet the same machine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from benchmarks.bench import Bench, Running
from benchmarks.compare.verdict import Sample
from benchmarks.figures import Unit

Measure = Callable[[], Awaitable[Sample]]


@dataclass(frozen=True, slots=True)
class Row:
    """`open` sets up one side and gives what measures it once. `is_together`: both sides of a pair
    are measured at the same time; for servers at rest, which do not disturb each other.
    """

    number: str
    what: str
    unit: Unit
    open: Callable[[Bench], AbstractAsyncContextManager[Measure]]
    is_together: bool = False


async def metered(server: Running, count: int, load: Callable[[], Awaitable[float]]) -> Sample:
    """The figure of a load of `count` jobs or calls, with the processor time of the server."""
    before = server.process.processor_seconds()
    figure = await load()
    return Sample(figure, (server.process.processor_seconds() - before) / count)
