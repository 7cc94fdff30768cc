"""A webhook: its settings and secrets, the deliveries that wait, and what became of the last ones.

The engine keeps what a server must not forget. Which events concern a webhook, what is sent and how
is decided outside: its facts come with deliveries and the results of tries as values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush

from jobline_server.engine.limits import DAY_MS

JOBS_WEBHOOK = "_jobs"
"""The name of the webhook that has the deliveries to the URLs of jobs."""


class TryOutcome(IntEnum):
    """What became of a try to deliver an event."""

    DELIVERED = 1
    RETRYING = 2
    FAILED = 3
    GONE = 4


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """What a webhook is for: events sent to `url`, or pushes to `incoming_queue`. `events` are the
    numbers of kinds of events; `queue` is a pattern.
    """

    url: str = ""
    incoming_queue: str = ""
    events: tuple[int, ...] = ()
    queue: str = ""
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secret of a webhook, and the one before, which is used beside it for a time."""

    current: bytes
    previous: bytes = b""
    previous_until_ms: int = 0

    def valid(self, wall_ms: int) -> tuple[bytes, ...]:
        """Returns the secrets that sign and are accepted at this time, the newest first."""
        if self.previous and wall_ms < self.previous_until_ms:
            return self.current, self.previous
        return (self.current,)


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event that waits to be sent to a webhook: to `url`, if its job says where. `id` is the
    same in all tries.
    """

    number: int
    id: str
    type: str
    body: bytes
    due_ms: int
    url: str = ""
    tries: int = 0

    def size(self) -> int:
        """Returns about how many bytes it takes."""
        return len(self.body) + len(self.url) + DELIVERY_BYTES


# A delivery is tried again after this time at the latest. One that would wait much longer had its
# time from a clock that was set back since, and is due.
RETRY_MS_MAX = 1 * DAY_MS
AHEAD_MS_MAX = RETRY_MS_MAX * 11 // 10
# What a delivery takes besides its body and URL.
DELIVERY_BYTES = 300


@dataclass(frozen=True, slots=True)
class Try:
    """A try of a delivery. `status` is that of the answer, 0 without; `next_ms` is when it is tried
    again, 0 for never.
    """

    number: int
    id: str
    type: str
    at_ms: int
    took_ms: int
    attempt: int
    status: int
    outcome: TryOutcome
    error: str = ""
    next_ms: int = 0


class Webhook:
    """A webhook. `pending` has the deliveries that wait, by number, the oldest first; `told` the
    row of each shard's journal whose events it was told of when it last changed.
    """

    __slots__ = (
        "_due",
        "armed",
        "changed_ms",
        "created_ms",
        "delivered",
        "disabled_reason",
        "dropped",
        "failed",
        "ids",
        "missed",
        "name",
        "number",
        "pending",
        "pending_bytes",
        "secrets",
        "settings",
        "told",
        "tries",
    )

    def __init__(self, name: str, number: int, settings: WebhookSettings, secrets: Secrets) -> None:
        self.name = name
        self.number = number
        self.settings = settings
        self.secrets = secrets
        self.disabled_reason = ""
        self.delivered = self.failed = self.dropped = self.missed = 0
        self.tries: tuple[Try, ...] = ()
        self.created_ms = self.changed_ms = 0
        self.told: tuple[int, ...] = ()
        self.pending: dict[int, Delivery] = {}
        # Bookkeeping.
        self.pending_bytes = 0
        self.ids: set[str] = set()
        self.armed: dict[int, int] = {}
        """When each delivery is to be returned; entries of `_due` that say otherwise are old."""
        self._due: list[tuple[int, int]] = []

    def put(self, delivery: Delivery) -> None:
        """Adds a delivery that waits, or changes one."""
        before = self.pending.get(delivery.number)
        if before is None:
            self.pending_bytes += delivery.size()
            self.ids.add(delivery.id)
        self.pending[delivery.number] = delivery
        self.arm(delivery.number, delivery.due_ms)

    def drop(self, number: int) -> bool:
        """Removes a delivery; returns whether it was there."""
        delivery = self.pending.pop(number, None)
        if delivery is None:
            return False
        self.armed.pop(number, None)
        self.pending_bytes -= delivery.size()
        self.ids.discard(delivery.id)
        return True

    def arm(self, number: int, due_ms: int) -> None:
        """Has a delivery that waits returned by `pop_due` once, at this time and no other."""
        if number in self.pending:
            self.armed[number] = due_ms
            heappush(self._due, (due_ms, number))

    def pop_due(self, wall_ms: int) -> Delivery | None:
        """Returns a delivery that is due; None without. `arm` it again if it is not tried."""
        due_ms = self.due_ms()
        if due_ms is None or wall_ms < due_ms <= wall_ms + AHEAD_MS_MAX:
            return None
        _, number = heappop(self._due)
        del self.armed[number]
        return self.pending[number]

    def due_ms(self) -> int | None:
        """Returns when to look at its deliveries again; None if there is nothing to do."""
        while self._due:
            due_ms, number = self._due[0]
            if self.armed.get(number) == due_ms:
                return due_ms
            # It was dropped, or this is the time of an earlier try, as after recovery.
            heappop(self._due)
        return None
