"""Which events concern a webhook, and what is sent of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import repeat
from typing import NamedTuple

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.rules import JobRules
from jobline_server.engine.webhook import JOBS_WEBHOOK, Delivery, Webhook
from jobline_server.runtime.watch.event_webhooks import NEVER_TOLD
from jobline_server.runtime.watch.feed_reader import Part
from jobline_server.wire.event_runs import EventRun, EventView

ENDS = frozenset(
    int(kind)
    for kind in (
        EventKind.EVENT_KIND_COMPLETED,
        EventKind.EVENT_KIND_DEAD,
        EventKind.EVENT_KIND_CANCELLED,
        EventKind.EVENT_KIND_EXPIRED,
    )
)
# Kinds whose names begin with one of these are of something else than a job.
_OTHERS = ("queue", "group", "schedule", "batch", "flow", "worker", "storage")
# Queues of which a filter remembers whether they match its pattern.
QUEUES_KEPT_MAX = 1_000
# Looks at jobs between two pauses, each job once and once more for each filter that it meets, at
# 0.2 µs each: four thousand jobs of an answer may have as many names, and meet a hundred filters.
CHECKS_AT_ONCE = 10_000


def type_of(kind: int) -> str:
    """Returns the type of an event, as it is sent: `job.completed`, `queue.paused`."""
    name = EventKind.Name(EventKind.ValueType(kind)).removeprefix("EVENT_KIND_").lower()
    first, _, rest = name.partition("_")
    return f"{first}.{rest}" if first in _OTHERS else f"job.{name}"


def matches(pattern: str, text: str) -> bool:
    """Returns whether a text matches a pattern of `*` and `?`, in time that is their product at
    most.
    """
    at = in_text = 0
    star = again = -1
    while in_text < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, again = at, in_text
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[in_text]):
            at += 1
            in_text += 1
        elif star >= 0:
            # The last star takes one character more.
            again += 1
            at, in_text = star + 1, again
        else:
            return False
    return not pattern[at:].strip("*")


class Found(NamedTuple):
    """An event of a run for a webhook: `at` is the run of ids, `number` the event among all. With
    `dropped` it is that many events which are not delivered.
    """

    webhook: str
    job_id: int
    at: int
    number: int
    url: str = ""
    dropped: int = 0


class _Piece(NamedTuple):
    """A run of ids whose events concern the same webhooks, each with a URL or none."""

    start: int
    jobs: int
    at: int
    number: int
    targets: list[tuple[str, str]]


class Filter:
    """What one webhook is told of."""

    def __init__(self, webhook: Webhook) -> None:
        settings = webhook.settings
        self.name = webhook.name
        self.number = webhook.number
        self._kinds = frozenset(settings.events) or ENDS
        self._pattern = settings.queue
        self._since_ms = webhook.created_ms
        self._names = frozenset(settings.names)
        self._tags = frozenset(settings.tags)
        self._queues: dict[str, bool] = {}

    def wants_kind(self, shared: EventView) -> bool:
        """Returns whether events of a run may concern it."""
        return (
            shared.kind in self._kinds
            and shared.at_ms >= self._since_ms
            and (not self._pattern or self._wants_queue(shared.queue))
        )

    def _wants_queue(self, queue: str) -> bool:
        known = self._queues.get(queue)
        if known is None:
            if len(self._queues) >= QUEUES_KEPT_MAX:
                self._queues.clear()
            known = self._queues[queue] = matches(self._pattern, queue)
        return known

    def wants_job(self, name: str, rules: JobRules) -> bool:
        """Returns whether an event of a job that has this name and these rules concerns it."""
        if self._names and name not in self._names:
            return False
        return not self._tags or not self._tags.isdisjoint(rules.tags)


def filters_of(webhooks: Sequence[Webhook]) -> list[Filter]:
    """Returns the filters of webhooks that are told of events."""
    return [
        Filter(one)
        for one in webhooks
        if one.name != JOBS_WEBHOOK and one.settings.url and not one.settings.disabled
    ]


def found_in(run: EventRun, filters: Sequence[Filter], most: int) -> Iterator[Found | None]:
    """Yields the events of a run that concern webhooks, and those for the URLs of jobs: the last
    `most` of each, and how many were before them. None is a good moment to pause: there may be
    many jobs, and many filters, and few events that are wanted.
    """
    pieces: Iterable[_Piece | None] = _pieces_of(run, filters)
    left: Counter[str] = Counter()
    if run.total > most:
        kept: list[_Piece] = []
        for piece in pieces:
            if piece is None:
                yield None
                continue
            kept.append(piece)
            for webhook, _ in piece.targets:
                left[webhook] += piece.jobs
        pieces = kept
    for piece in pieces:
        if piece is None:
            yield None
            continue
        start, count, at, number, targets = piece
        for webhook, url in targets:
            early = min(max(left[webhook] - most, 0), count)
            left[webhook] -= count
            if early:
                yield Found(webhook, start, at, number, url, early)
            for index in range(early, count):
                yield Found(webhook, start + index, at, number + index, url)


def _pieces_of(run: EventRun, filters: Sequence[Filter]) -> Iterator[_Piece | None]:
    """Yields the runs of ids that are wanted, and None after `CHECKS_AT_ONCE` looks."""
    shared, columns = run.shared, run.columns
    if shared.kind in NEVER_TOLD:
        return
    wanted = [one for one in filters if one.wants_kind(shared)]
    has_urls = shared.kind in ENDS and (bool(shared.rules.webhook) or bool(columns.rules))
    if not wanted and not has_urls:
        return
    names = columns.names or repeat(shared.name)
    rules = columns.rules or repeat(shared.rules)
    runs = zip(run.starts or (0,), run.counts or (1,), names, rules, strict=False)
    number = checks = 0
    last: tuple[str, JobRules] | None = None
    targets: list[tuple[str, str]] = []
    for index, (start, count, name, of_job) in enumerate(runs):
        checks += 1 + len(targets)
        # Most have what the one before has.
        if last is None or name != last[0] or of_job is not last[1]:
            last = name, of_job
            targets = [(one.name, "") for one in wanted if one.wants_job(name, of_job)]
            if has_urls and of_job.webhook:
                targets.append((JOBS_WEBHOOK, of_job.webhook))
            checks += len(wanted)
        if checks >= CHECKS_AT_ONCE:
            checks = 0
            yield None
        if targets:
            yield _Piece(start, count, index, number, targets)
        number += count


def delivery_of(part: Part, run: EventRun, found: Found, now_ms: int) -> Delivery:
    """Returns the delivery of an event, due now; it has no number yet. Its id says where the event
    is in the journal, so that it is the same if the event is read again; and when it was, as there
    are other journals.
    """
    shared = run.shared
    where, _, sent = part.begun.rpartition("+")
    place = f"{shared.at_ms}_{shared.shard}_{shared.offset}_{int(sent) + found.number}"
    if where.endswith("@"):
        # In no journal: the number of its batch, in this life of the server.
        place = f"{place}_{part.key[0]}"
    kind = type_of(shared.kind)
    document = {"type": kind, "timestamp": _time(shared.at_ms), "data": _data(run, found)}
    return Delivery(
        number=0,
        id=f"msg_{found.webhook}_{place}",
        type=kind,
        body=json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(),
        due_ms=now_ms,
        url=found.url,
    )


def _data(run: EventRun, found: Found) -> dict[str, object]:
    """Returns what is said of an event: the fields that are set."""
    shared, columns, index = run.shared, run.columns, found.at
    run_at_ms = columns.run_at_ms[index] if columns.run_at_ms else shared.run_at_ms
    error = shared.error
    data: dict[str, object] = {
        "job_id": found.job_id,
        "queue": shared.queue,
        "name": columns.names[index] if columns.names else shared.name,
        "state": shared.state.name if shared.state is not None else "",
        "state_before": shared.before.name if shared.before is not None else "",
        "attempt": columns.attempts[index] if columns.attempts else shared.attempt,
        "worker": columns.workers[index] if columns.workers else shared.worker,
        "reason": shared.reason.name if shared.reason else "",
        "error": {"type": error.type, "message": error.message} if error is not None else None,
        "run_at": _time(run_at_ms) if run_at_ms else "",
        "progress": shared.progress,
        "message": shared.message,
        "batch_id": shared.batch_id,
        "group": shared.group,
        "principal": shared.principal,
    }
    return {name: value for name, value in data.items() if value}


def _time(at_ms: int) -> str:
    """Returns a time as RFC 3339 has it."""
    moment = datetime.fromtimestamp(at_ms / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
