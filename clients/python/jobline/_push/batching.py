"""Gathering: concurrent pushes share one call. Pure: no clock, no thread, no loop, no wire.

Pushes that share queue and options stand in one lane. A lane has at most one batch flying: the
first push goes at once, those that come meanwhile gather and go together when it has landed, so
order within a lane is kept and a busy client makes few, large calls. What waits is bounded, and a
full buffer refuses the newest.

A batch whose outcome is unknown flies again as the same call (or with its job keys), so
nothing is stored twice. A batch that was refused for what is in it is split, until the one push at
fault stands alone and the others go through.

The shell adds pushes, takes `batches_to_send`, makes the calls, and tells how each one went; it
calls again at `next_deadline`. It deliberately does not know what a waiter is: a future in one
shell, a lock in another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from jobline._arguments import number_given
from jobline._backoff import RETRY, Pauses
from jobline._push.calls import REPEAT_SECONDS_MAX
from jobline.errors import BufferFull

K = TypeVar("K", bound=Hashable)
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """`jobs`, `payload_bytes`: what may wait or fly in all. `batch_*`: what one call may carry;
    one job always fits. `flights`: calls at a time, over all lanes. `give_up_after`: seconds from
    the first push of a batch to its last try.
    """

    jobs: int = 10_000
    payload_bytes: int = 64 << 20
    batch_jobs: int = 1_000
    batch_bytes: int = 4 << 20
    flights: int = 32
    give_up_after: float = 30.0


def limits_given(buffer_jobs: int, buffer_bytes: int, timeout: float) -> BatchLimits:
    """The limits of a client. Raises InvalidArgument for a buffer that would hold nothing."""
    return BatchLimits(
        jobs=number_given("buffer_jobs", buffer_jobs, minimum=1),
        payload_bytes=number_given("buffer_bytes", buffer_bytes, minimum=1),
        give_up_after=min(timeout, REPEAT_SECONDS_MAX),
    )


@dataclass(slots=True, eq=False)
class Batch(Generic[K, W]):
    """Pushes that travel together, in columns. `job_keys` is empty where pushes have none."""

    key: K
    payloads: list[bytes]
    job_keys: list[str]
    waiters: list[W]
    payload_bytes: int
    give_up_at: float
    request_id: str = ""
    tries: int = 0

    @property
    def repeat_id(self) -> str | None:
        """What its push may be repeated under by hand. None where several pushes share the call: a
        repeat of one of them would be taken for all.
        """
        return self.request_id if self.request_id and len(self.waiters) == 1 else None


@dataclass(slots=True, eq=False)
class _Pending(Generic[K, W]):
    """Pushes of one kind: what flies, what goes next, what gathers."""

    key: K
    payloads: list[bytes] = field(default_factory=list)
    job_keys: list[str] = field(default_factory=list)
    waiters: list[W] = field(default_factory=list)
    payload_bytes: int = 0
    since: float = 0.0

    next: deque[Batch[K, W]] = field(default_factory=deque)
    flying: Batch[K, W] | None = None
    not_before: float = 0.0


class PushBatcher(Generic[K, W]):
    """All lanes of one client."""

    def __init__(
        self,
        limits: BatchLimits,
        *,
        request_ids: Callable[[], str],
        over: Callable[[str, bool], None],
        chance: Callable[[], float],
        pauses: Pauses = RETRY,
    ) -> None:
        self._limits = limits
        self._request_ids = request_ids
        self._over = over
        self._chance = chance
        self._pauses = pauses
        self._pending: dict[K, _Pending[K, W]] = {}
        self._idle: dict[K, None] = {}  # lanes with something to send and nothing flying, in order
        self._flights = 0
        self.jobs = 0
        self.payload_bytes = 0

    def add(self, now: float, key: K, payload: bytes, waiter: W, job_key: str = "") -> bool:
        """Takes a push; True if `batches_to_send` has something to send because of it.

        Raises BufferFull, and nothing has changed then.
        """
        size = len(payload)
        if self.jobs >= self._limits.jobs or (
            self.payload_bytes + size > self._limits.payload_bytes and self.jobs
        ):
            raise BufferFull(
                f"{self.jobs} pushes of {self.payload_bytes} bytes wait for the server already: "
                "push more slowly, or give the client a larger buffer"
            )
        pending = self._pending.get(key)
        if pending is None:
            pending = self._pending[key] = _Pending(key)
            self._idle[key] = None
        if not pending.waiters:
            pending.since = now
        pending.payloads.append(payload)
        pending.waiters.append(waiter)
        if job_key:
            pending.job_keys.append(job_key)
        pending.payload_bytes += size
        self.jobs += 1
        self.payload_bytes += size
        return pending.flying is None

    def withdraw(self, key: K, waiter: W) -> bool:
        """Takes a push back; False if it has left already, and may be stored."""
        pending = self._pending.get(key)
        if pending is None or waiter not in pending.waiters:
            return False
        index = pending.waiters.index(waiter)
        del pending.waiters[index]
        size = len(pending.payloads.pop(index))
        if pending.job_keys:
            del pending.job_keys[index]
        pending.payload_bytes -= size
        self.jobs -= 1
        self.payload_bytes -= size
        self._file(pending)
        return True

    def batches_to_send(self, now: float) -> list[Batch[K, W]]:
        """The batches that go now; each must be told of with one of the `handle_…` methods."""
        batches = []
        for key in list(self._idle):
            if self._flights >= self._limits.flights:
                break
            pending = self._pending[key]
            if pending.not_before > now:
                continue
            del self._idle[key]
            batch = pending.next.popleft() if pending.next else self._cut(pending)
            batch.tries += 1
            pending.flying = batch
            self._flights += 1
            batches.append(batch)
        return batches

    def next_deadline(self) -> float | None:
        """When `batches_to_send` has something to send without anything else happening."""
        if self._flights >= self._limits.flights:
            return None
        return min((self._pending[key].not_before for key in self._idle), default=None)

    def handle_done(self, batch: Batch[K, W], *, is_known: bool = True) -> None:
        """The batch was answered, well or with a refusal that is passed on, or (not `is_known`) it
        is given up and may be stored: its room is free.
        """
        self._over(batch.request_id, is_known)
        self.jobs -= len(batch.waiters)
        self.payload_bytes -= batch.payload_bytes
        self._file(self._land(batch))

    def handle_unknown(self, now: float, batch: Batch[K, W]) -> bool:
        """No definite answer came. True: the batch flies again after a pause; False: it is time to
        give up, and the batch is done.
        """
        pause = self._pauses.after(batch.tries, self._chance)
        if now + pause > batch.give_up_at:
            self.handle_done(batch, is_known=False)
            return False
        pending = self._land(batch)
        pending.next.appendleft(batch)
        pending.not_before = now + pause
        self._file(pending)
        return True

    def handle_refused(self, batch: Batch[K, W]) -> bool:
        """The batch was refused for something that is in it. True: it is split, and its halves go
        one after the other; False: it is a single push, refused and done.
        """
        if len(batch.waiters) == 1:
            self.handle_done(batch)
            return False
        self._over(batch.request_id, True)
        pending = self._land(batch)
        middle = len(batch.waiters) // 2
        pending.next.appendleft(self._part(batch, middle, len(batch.waiters)))
        pending.next.appendleft(self._part(batch, 0, middle))
        self._file(pending)
        return True

    def _land(self, batch: Batch[K, W]) -> _Pending[K, W]:
        pending = self._pending[batch.key]
        pending.flying = None
        pending.not_before = 0.0
        self._flights -= 1
        return pending

    def _file(self, pending: _Pending[K, W]) -> None:
        """Puts a lane where it belongs: busy, waiting to send, or forgotten."""
        if pending.flying is not None:
            return
        if pending.next or pending.waiters:
            self._idle[pending.key] = None
        else:
            self._idle.pop(pending.key, None)
            del self._pending[pending.key]

    def _cut(self, pending: _Pending[K, W]) -> Batch[K, W]:
        """Takes what one call may carry from the front of what gathers."""
        count = self._count_that_fits(pending)
        batch = Batch(
            key=pending.key,
            payloads=pending.payloads[:count],
            job_keys=pending.job_keys[:count],
            waiters=pending.waiters[:count],
            payload_bytes=pending.payload_bytes,
            give_up_at=pending.since + self._limits.give_up_after,
            request_id="" if pending.job_keys else self._request_ids(),
        )
        if count < len(pending.waiters):
            batch.payload_bytes = sum(map(len, batch.payloads))
        del pending.payloads[:count], pending.job_keys[:count], pending.waiters[:count]
        pending.payload_bytes -= batch.payload_bytes
        return batch

    def _count_that_fits(self, pending: _Pending[K, W]) -> int:
        limits = self._limits
        count = min(len(pending.waiters), limits.batch_jobs)
        if pending.payload_bytes <= limits.batch_bytes:
            return count
        total = 0
        for index in range(count):
            total += len(pending.payloads[index])
            if total > limits.batch_bytes:
                return max(index, 1)
        return count

    def _part(self, batch: Batch[K, W], start: int, end: int) -> Batch[K, W]:
        payloads = batch.payloads[start:end]
        return Batch(
            key=batch.key,
            payloads=payloads,
            job_keys=batch.job_keys[start:end],
            waiters=batch.waiters[start:end],
            payload_bytes=sum(map(len, payloads)),
            give_up_at=batch.give_up_at,
            request_id="" if batch.job_keys else self._request_ids(),
        )
