"""Handlers that connected workers have announced, counted as streams open and end, so that nobody
walks over workers: by queue and name, which variants there are, and how many workers have each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

from jobline_server.dispatch.frames import Open
from jobline_server.runtime.calls.schemas import AnnouncedSchemas
from jobline_server.runtime.queries.paging import first_names, handler_bytes, page_by_name
from jobline_server.runtime.views import HandlerVariant, HandlerView

# Variants of one handler that are shown, those of the most workers.
VARIANTS_SHOWN_MAX = 20
# Names that a step of a list looks at.
STEP_NAMES = 4_000

# In page tokens, between the queue and what follows: it stands in no name.
_MARK = "\n"
_NAMED, _ANY = "0", "1"

_Key = tuple[str, bool]
"""Name, and whether it is the handler for any name."""


class Handlers:
    """The handlers of all open streams."""

    def __init__(self) -> None:
        self._by_queue: dict[str, dict[_Key, Counter[HandlerVariant]]] = {}
        self._announced: dict[object, Open] = {}
        self.schemas = AnnouncedSchemas()

    def add(self, owner: object, opened: Open) -> None:
        """Counts what a stream announces, after `schemas.shared`. `owner` is the stream."""
        self._announced[owner] = opened
        self.schemas.add(opened)
        for queue, key, variant in _variants_of(opened):
            of_queue = self._by_queue.setdefault(queue, {})
            of_queue.setdefault(key, Counter())[variant] += 1

    def remove(self, owner: object) -> None:
        """Removes what a stream has announced, if it was not removed before."""
        opened = self._announced.pop(owner, None)
        if opened is None:
            return
        self.schemas.remove(opened)
        for queue, key, variant in _variants_of(opened):
            of_queue = self._by_queue[queue]
            counts = of_queue[key]
            counts[variant] -= 1
            if not counts[variant]:
                del counts[variant]
            if not counts:
                del of_queue[key]
            if not of_queue:
                del self._by_queue[queue]

    def __contains__(self, queue: str) -> bool:
        """Returns whether any worker has announced a handler for a queue."""
        return queue in self._by_queue

    def find(self, queue: str, name: str) -> Mapping[HandlerVariant, int]:
        """Returns the variants of the handlers that take jobs of this name, and how many workers
        have each: handlers of the name, and those for any name of workers that have none of it.
        """
        of_queue = self._by_queue.get(queue)
        if of_queue is None:
            return {}
        named, anything = of_queue.get((name, False)), of_queue.get(("", True))
        return named or anything or {}

    async def list_handlers(
        self, *, page_size: int, page_token: str, queue: str
    ) -> tuple[list[HandlerView], str]:
        """Returns a page of handlers by queue and name; one cut short by its size has at least one
        handler.
        """
        first = await first_names(self._tokens(page_token, queue), page_size + 1)
        return await page_by_name(first, page_size, self._view, handler_bytes)

    def _tokens(self, after: str, queue: str) -> Iterator[list[str]]:
        queues = [queue] if queue else list(self._by_queue)
        tokens = (
            token
            for one in queues
            for name, any_name in list(self._by_queue.get(one, ()))
            if (token := _MARK.join((one, _ANY if any_name else _NAMED, name))) > after
        )
        while part := list(islice(tokens, STEP_NAMES)):
            yield part

    def _view(self, token: str) -> HandlerView | None:
        queue, kind, name = token.split(_MARK)
        counts = self._by_queue.get(queue, {}).get((name, kind == _ANY))
        if counts is None:
            return None
        shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return HandlerView(
            queue=queue,
            name=name,
            any_name=kind == _ANY,
            workers=counts.total(),
            variants=shown[:VARIANTS_SHOWN_MAX],
            differs=[
                field
                for index, field in enumerate(HandlerVariant._fields)
                if len({variant[index] for variant in counts}) > 1
            ],
        )


def _variants_of(opened: Open) -> Iterator[tuple[str, _Key, HandlerVariant]]:
    """Yields what a worker announces: a handler that it names twice counts once."""
    version = opened.worker.version
    found = {
        (handler.queue, (handler.name, handler.any_name)): handler for handler in opened.handlers
    }
    for (queue, key), handler in found.items():
        yield queue, key, HandlerVariant(version, handler.payload_schema, handler.result_schema)
