"""The shape of the table of facts of this room: one row per fact.

Where an item was set apart, the journal goes on telling of jobs that are not there. Recovery then
applies facts in pieces so small that each stands or falls alone (`storage/salvage.py`), so a row
also says how its fact falls into pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jobline.v1 import entry_pb2
from jobline_server.engine.entries import Fact


class FactRow(NamedTuple):
    """How one fact is written, read and salvaged.

    `name` is its field of `Entry`. Each function takes the very fact, or message, that it is
    registered for, which no type of a table can say.
    """

    name: str
    fill: Callable[[entry_pb2.Entry, Any], None]
    read: Callable[[int, Any], Fact]
    pieces: Callable[[Any], Iterator[Fact]]
    """The fact as facts about one run or one job each, in an order that means the same."""


FactTable = dict[type, FactRow]


def whole(fact: Fact) -> Iterator[Fact]:
    """Yields the fact itself: it is of one job, push or queue, or changes nothing but counts."""
    yield fact
