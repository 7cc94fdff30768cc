"""Pages: of jobs by id, of queues and workers by name; bounded by number and by the bytes that they
show.

Live jobs and ended ones come from several sources, each in order of id. A source fills a
`PageBuilder` until that alone is enough for a page; `page_of` merges them. A page cut short by its
size holds at least one entry; the next page continues right after it.

This module does not know what is asked for or where it comes from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from jobline_server.engine.values import JobError
from jobline_server.runtime.views import JobView, QueueView, WorkerView

View = TypeVar("View")

# What a page shows at most: many clients take messages of at most 4 MiB.
API_PAGE_BYTES_MAX = 3 << 20
# Numbers and moments of a job, a queue or a worker, and what stands around its fields.
FIXED_BYTES = 256
# The same of a row within it.
ROW_BYTES = 24
# Above all ids.
NO_ID = 1 << 64


class PageBuilder:
    """Jobs of one source, by id."""

    __slots__ = ("_bytes_left", "_with_payloads", "found", "room")

    def __init__(self, count: int, *, with_payloads: bool) -> None:
        self.room = count
        self.found: list[tuple[int, JobView]] = []
        self._bytes_left = API_PAGE_BYTES_MAX
        self._with_payloads = with_payloads

    @property
    def is_full(self) -> bool:
        """Whether it is enough for a page; its source may have more."""
        return self.room <= 0 or self._bytes_left < 0

    @property
    def last_id(self) -> int:
        """The id behind which nothing is needed any more, once it is full."""
        return self.found[-1][1].id if self.is_full and self.found else NO_ID

    def add(self, view: JobView) -> None:
        """Takes the next job; without its payload, checkpoint and result if those are not shown."""
        if not self._with_payloads:
            view.payload = view.worker_checkpoint = view.result = b""
        size = shown_bytes(view)
        self.found.append((size, view))
        self.room -= 1
        self._bytes_left -= size


def page_of(pieces: Iterable[PageBuilder], count: int) -> tuple[list[JobView], bool]:
    """The first `count` jobs of all pieces, or fewer if they show enough; and whether there may be
    more. A job that is in two pieces is shown as the first of them has it.
    """
    pieces = list(pieces)
    by_id: dict[int, tuple[int, JobView]] = {}
    for piece in pieces:
        for size, view in piece.found:
            by_id.setdefault(view.id, (size, view))
    page = _fitting(by_id[job_id] for job_id in sorted(by_id)[:count])
    return page, len(page) < len(by_id) or any(piece.is_full for piece in pieces)


async def first_names(batches: Iterable[Iterable[str]], count: int) -> list[str]:
    """The first `count` names of many, which come in batches: a step each."""
    first: list[str] = []
    for batch in batches:
        first = sorted([*first, *batch])[:count]
        await asyncio.sleep(0)
    return first


def page_by_name(
    first: Sequence[str],
    count: int,
    show: Callable[[str], View | None],
    bytes_of: Callable[[View], int],
) -> tuple[list[View], str]:
    """What the first `count` of these names, in order, stand for, or fewer if they show enough; and
    the token of the next page, which is the name before that, or "" if there are no more names.
    What is gone since it was named is left out.
    """
    page: list[View] = []
    left = API_PAGE_BYTES_MAX
    for at, name in enumerate(first[:count]):
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
    """The first of these, given with their bytes, that a page can show; one at least."""
    page: list[View] = []
    left = API_PAGE_BYTES_MAX
    for size, view in sized:
        if page and size > left:
            break
        page.append(view)
        left -= size
    return page


def queue_bytes(view: QueueView) -> int:
    """About how many bytes of a message a queue takes."""
    size = FIXED_BYTES + ROW_BYTES * len(view.priorities)
    size += sum(map(_text_bytes, (view.name, view.paused_by, view.pause_reason)))
    return size + _texts_bytes(view.settings.non_retryable_error_types)


def worker_bytes(view: WorkerView) -> int:
    """About how many bytes of a message a worker takes."""
    worker = view.worker
    words = (view.session, worker.id, worker.host, worker.version, worker.language)
    size = FIXED_BYTES + sum(map(_text_bytes, words))
    size += sum(_texts_bytes(label) for label in worker.labels)
    size += _texts_bytes(queue for queue, _ in view.queues)
    for one in view.handlers:
        size += _texts_bytes((one.queue, one.name, one.payload_schema, one.result_schema))
    return size


def shown_bytes(view: JobView) -> int:
    """About how many bytes of a message a job takes."""
    options = view.options
    words = (view.queue, view.job_key, view.worker, view.progress_message)
    size = FIXED_BYTES + len(view.payload) + len(view.worker_checkpoint) + len(view.result)
    size += sum(map(_text_bytes, (*words, options.name, options.content_type)))
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
    """Of texts that stand in a row, or are one."""
    return sum(ROW_BYTES + _text_bytes(text) for text in texts)


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
