"""Builds pages of jobs and of runs of jobs, by id.

As in `paging`, each source fills a builder until that alone is enough for a page, and `run_page_of`
merges them. A page ends no later than the first of them that is full: its source was not read any
further.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from jobline_server.runtime.queries.job_runs import JobRun
from jobline_server.runtime.queries.paging import NO_ID, PageBuilder, shown_bytes
from jobline_server.runtime.views import JobView

# Jobs and runs of a page together: each of them takes time, the jobs within a run hardly any.
PAGE_ENTRIES_MAX = 1_000

Entry = tuple[int, JobView | JobRun, int]
"""First id, what is shown, and its bytes, which only a single job has."""


class RunPageBuilder(PageBuilder):
    """The jobs and runs of one source, by id. The last one is cut, or left out, to fit."""

    __slots__ = ("_entries_left", "_is_cut", "_last_id", "runs")

    def __init__(self, count: int, *, with_payloads: bool) -> None:
        super().__init__(count, with_payloads=with_payloads)
        self.runs: list[JobRun] = []
        self._entries_left = PAGE_ENTRIES_MAX
        self._is_cut = False
        self._last_id = 0

    @property
    def is_full(self) -> bool:
        """Returns whether what is here is enough for a page; the source may have more."""
        return self._is_cut or self.room <= 0 or self._entries_left <= 0

    @property
    def last_id(self) -> int:
        """Returns the id after which no more jobs are needed; no limit until the page is full."""
        return self._last_id if self.is_full else NO_ID

    @property
    def entries_left(self) -> int:
        """Returns how many more jobs and runs it takes."""
        return self._entries_left

    @property
    def end_id(self) -> int:
        """Returns the id after the last one that is here."""
        return self._last_id + 1

    def add(self, view: JobView, size: int = 0) -> None:
        """Adds the next job, of which `size` bytes are shown, as `PageBuilder` does."""
        self._clear_unshown(view)
        size = size or shown_bytes(view)
        if size > self._bytes_left and self._last_id:
            self._is_cut = True
            return
        self.found.append((size, view))
        self._count_in(view.id, 1, size)

    def add_run(self, run: JobRun) -> None:
        """Adds the next jobs as a run: those that fit, and one at least if there is none yet."""
        shows = self._with_payloads
        count = min(self.room, run.fitting(self._bytes_left, with_payloads=shows))
        count = count if self._last_id else max(count, 1)
        self._is_cut = count < run.count
        if count:
            added = run.part(run.first_id, count)
            self.runs.append(added)
            size = added.shown_bytes(count, with_payloads=shows)
            self._count_in(added.end_id - 1, count, size)

    def entries(self) -> Iterator[Entry]:
        """Yields what is here."""
        for size, view in self.found:
            yield view.id, view, size
        for run in self.runs:
            yield run.first_id, run, 0

    def _count_in(self, last_id: int, count: int, size: int) -> None:
        self.room -= count
        self._bytes_left -= size
        self._entries_left -= 1
        self._last_id = last_id


class RunPage(NamedTuple):
    """Jobs and runs by id, no job twice; the last id, and whether there may be more."""

    jobs: list[JobView]
    runs: list[JobRun]
    last_id: int
    is_cut: bool


def run_page_of(builders: Iterable[RunPageBuilder], count: int, *, with_payloads: bool) -> RunPage:
    """Merges what builders have: the first `count` jobs, or fewer if their bytes, or the number of
    jobs and runs, are enough. A job in two sources is taken from the entry that begins first.
    """
    builders = list(builders)
    limit_id = min((builder.last_id for builder in builders), default=NO_ID)
    page = RunPageBuilder(count, with_payloads=with_payloads)
    entries = (entry for builder in builders for entry in builder.entries())
    for first_id, shown, size in sorted(entries, key=itemgetter(0)):
        if page.is_full or first_id > limit_id:
            break
        if not isinstance(shown, JobRun):
            if first_id >= page.end_id:
                page.add(shown, size)
            continue
        begin, end = max(first_id, page.end_id), min(shown.end_id, limit_id + 1)
        if begin < end:
            page.add_run(shown.part(begin, end - begin))
    is_cut = page.is_full or any(builder.is_full for builder in builders)
    views = [view for _, view in page.found]
    return RunPage(views, page.runs, page.end_id - 1, is_cut)
