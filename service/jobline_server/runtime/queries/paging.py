"""Builds pages: of jobs by id, of queues and workers by name; bounded by number and by bytes.

Live jobs and ended ones come from several sources, each in order of id. A source fills a
`PageBuilder` until that alone is enough for a page; `page_of` merges them. A page cut short by its
size holds at least one entry; the next page continues right after it.

This module does not know filters or sources.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from jobline_server.engine.values import JobError
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.views import HandlerView, JobView, QueueView, WorkerView

View = TypeVar("View")
Place = TypeVar("Place", bound=str | tuple[int, int, str])

# The most bytes of a page: many clients take messages of at most 4 MiB.
API_PAGE_BYTES_MAX = 3 << 20
# The numbers and times of a job, a queue or a worker, and the framing of its fields.
FIXED_BYTES = 256
# The same for a row within it.
ROW_BYTES = 24
# An id in a list.
ID_BYTES = 9
# Above all ids.
NO_ID = 1 << 64


class PageBuilder:
    """The jobs of one source, by id."""

    __slots__ = ("_bytes_left", "_with_payloads", "found", "room")

    def __init__(self, count: int, *, with_payloads: bool) -> None:
        self.room = count
        self.found: list[tuple[int, JobView]] = []
        self._bytes_left = API_PAGE_BYTES_MAX
        self._with_payloads = with_payloads

    @property
    def is_full(self) -> bool:
        """Returns whether the jobs are enough for a page; the source may have more."""
        return self.room <= 0 or self._bytes_left < 0

    @property
    def last_id(self) -> int:
        """Returns the id after which no more jobs are needed; no limit until the page is full."""
        return self.found[-1][1].id if self.is_full and self.found else NO_ID

    def add(self, view: JobView) -> None:
        """Adds the next job; clears its payload, checkpoint and result if they are not shown."""
        self._clear_unshown(view)
        size = shown_bytes(view)
        self.found.append((size, view))
        self.room -= 1
        self._bytes_left -= size

    def _clear_unshown(self, view: JobView) -> None:
        if not self._with_payloads:
            view.payload = view.worker_checkpoint = view.result = b""


def page_of(builders: Iterable[PageBuilder], count: int) -> tuple[list[JobView], bool]:
    """Merges pages: returns the first `count` jobs, or fewer if their size is enough, and whether
    there may be more. A job in two sources is taken from the first.
    """
    builders = list(builders)
    by_id: dict[int, tuple[int, JobView]] = {}
    for builder in builders:
        for size, view in builder.found:
            by_id.setdefault(view.id, (size, view))
    page = _fitting(by_id[job_id] for job_id in sorted(by_id)[:count])
    return page, len(page) < len(by_id) or any(builder.is_full for builder in builders)


async def first_names(batches: Iterable[Iterable[Place]], count: int) -> list[Place]:
    """Returns the first `count` names of many, or places in another order that end with a name;
    each batch takes an iteration of the loop.
    """
    first: list[Place] = []
    for batch in batches:
        first = sorted([*first, *batch])[:count]
        await asyncio.sleep(0)
    return first


async def page_by_name(
    first: Sequence[str],
    count: int,
    show: Callable[[str], View | None],
    bytes_of: Callable[[View], int],
) -> tuple[list[View], str]:
    """Returns the views of the first `count` names, or fewer if their size is enough, and the token
    of the next page: the last name of this one, or "" if there are no more. Leaves out names for
    which `show` returns None. It goes in slices.
    """
    page: list[View] = []
    left = API_PAGE_BYTES_MAX
    pace = Pace()
    for at, name in enumerate(first[:count]):
        await pace.rest()
        view = show(name)
        if view is None:
            continue
        size = bytes_of(view)
        if page and size > left:
            return page, first[at - 1]
        page.append(view)
        left -= size
    return page, first[count - 1] if len(first) > count else ""


def _fitting(sized: Iterable[tuple[int, View]]) -> list[View]:
    """Returns the first of these (size, view) that fit into a page, at least one."""
    page: list[View] = []
    left = API_PAGE_BYTES_MAX
    for size, view in sized:
        if page and size > left:
            break
        page.append(view)
        left -= size
    return page


def queue_bytes(view: QueueView) -> int:
    """Returns about how many bytes a queue takes in a message."""
    size = FIXED_BYTES + ROW_BYTES * len(view.priorities)
    size += sum(map(_text_bytes, (view.name, view.paused_by, view.pause_reason)))
    return size + _texts_bytes(view.settings.non_retryable_error_types)


def worker_bytes(view: WorkerView) -> int:
    """Returns about how many bytes a worker takes in a message."""
    worker = view.worker
    texts = (view.session, worker.id, worker.host, worker.version, worker.language)
    size = FIXED_BYTES + sum(map(_text_bytes, texts))
    size += sum(_texts_bytes(label) for label in worker.labels)
    size += _texts_bytes(queue for queue, _ in view.queues)
    for handler in view.handlers:
        schemas = (handler.payload_schema, handler.result_schema)
        size += _texts_bytes((handler.queue, handler.name, *schemas))
    return size


def handler_bytes(view: HandlerView) -> int:
    """Returns about how many bytes a handler takes in a message."""
    size = FIXED_BYTES + _texts_bytes((view.queue, view.name))
    return size + sum(_texts_bytes(variant) for variant, _ in view.variants)


def shown_bytes(view: JobView) -> int:
    """Returns about how many bytes a job takes in a message."""
    options = view.options
    texts = (view.queue, view.job_key, view.worker, view.progress_message, view.ties.group)
    size = FIXED_BYTES + len(view.payload) + len(view.worker_checkpoint) + len(view.result)
    size += sum(map(_text_bytes, (*texts, options.name, options.content_type)))
    size += ID_BYTES * len(view.ties.parents)
    for name, value in options.headers:
        size += _text_bytes(name) + _text_bytes(value) + 8
    size += _error_bytes(view.error)
    for attempt in view.history:
        size += FIXED_BYTES + _text_bytes(attempt.worker) + _text_bytes(attempt.version)
        size += _error_bytes(attempt.error)
    return size


def _error_bytes(error: JobError | None) -> int:
    if error is None:
        return 0
    texts = _text_bytes(error.type) + _text_bytes(error.message) + _text_bytes(error.stack)
    return texts + len(error.details)


def _texts_bytes(texts: Iterable[str]) -> int:
    """Returns the bytes of the texts of a row."""
    return sum(ROW_BYTES + _text_bytes(text) for text in texts)


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
