"""Pages of jobs: by id, bounded by number and by the bytes that they show.

Live jobs and ended ones come from several sources, each in order of id. A source fills a `Piece`
until that alone is enough for a page; `page_of` puts the pieces together. A page that ends for its
bytes holds one job at least, and all that come before the next page's first.

Which jobs are asked for, and where they come from, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine.values import JobError
from jobline_server.runtime.views import JobView

# What a page shows at most: many clients take messages of at most 4 MiB.
PAGE_BYTES_MAX = 3 << 20
# Numbers and moments of a job, and what stands around its fields.
FIXED_BYTES = 256


class Piece:
    """Jobs of one source, by id."""

    __slots__ = ("_bytes_left", "_with_payloads", "found", "room")

    def __init__(self, count: int, *, with_payloads: bool) -> None:
        self.room = count
        self.found: list[tuple[int, JobView]] = []
        self._bytes_left = PAGE_BYTES_MAX
        self._with_payloads = with_payloads

    @property
    def is_full(self) -> bool:
        """Whether it is enough for a page; its source may have more."""
        return self.room <= 0 or self._bytes_left < 0

    def add(self, view: JobView) -> None:
        """Takes the next job; without its payload, checkpoint and result if those are not shown."""
        if not self._with_payloads:
            view.payload = view.checkpoint = view.result = b""
        size = shown_bytes(view)
        self.found.append((size, view))
        self.room -= 1
        self._bytes_left -= size


def page_of(pieces: Iterable[Piece], count: int) -> tuple[list[JobView], bool]:
    """The first `count` jobs of all pieces, or fewer if they show enough; and whether there may be
    more. A job that is in two pieces is shown as the first of them has it.
    """
    pieces = list(pieces)
    by_id: dict[int, tuple[int, JobView]] = {}
    for piece in pieces:
        for size, view in piece.found:
            by_id.setdefault(view.id, (size, view))
    page: list[JobView] = []
    left = PAGE_BYTES_MAX
    for job_id in sorted(by_id):
        size, view = by_id[job_id]
        if len(page) == count or (page and size > left):
            return page, True
        page.append(view)
        left -= size
    return page, any(piece.is_full for piece in pieces)


def shown_bytes(view: JobView) -> int:
    """About how many bytes of a message a job takes."""
    options = view.options
    words = (view.queue, view.job_key, view.worker, view.progress_message)
    size = FIXED_BYTES + len(view.payload) + len(view.checkpoint) + len(view.result)
    size += sum(map(_text_bytes, (*words, options.name, options.content_type)))
    for name, value in options.headers:
        size += _text_bytes(name) + _text_bytes(value) + 8
    size += _error_bytes(view.error)
    for attempt in view.history:
        size += FIXED_BYTES + _text_bytes(attempt.worker) + _error_bytes(attempt.error)
    return size


def _error_bytes(error: JobError | None) -> int:
    if error is None:
        return 0
    texts = _text_bytes(error.type) + _text_bytes(error.message) + _text_bytes(error.stack)
    return texts + len(error.details)


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
