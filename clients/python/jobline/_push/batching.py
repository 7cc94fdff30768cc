"""`PushBatcher`: concurrent pushes share one call. Pure: no clock, no thread, no loop, no wire.

Pushes with the same key (queue and options) form batches, whatever job key and headers each has of
its own, and each key has at most one batch in flight. The first push is sent at once; pushes that
arrive meanwhile gather and are sent together when its reply is there. So pushes of one key keep
their order, and a busy client makes few, large calls. The buffer is bounded: when it is full, new
pushes are refused.

A batch whose outcome is unknown is sent again as the same call (or with its job keys, if all have
one), so nothing is stored twice. A batch that was refused for something in it is split, until the
push at fault is alone and the others are stored.

The pusher adds pushes, sends `batches_to_send`, and reports each result; it calls again at
`next_deadline`. What a waiter is does not matter here: a future in one pusher, a lock in the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

from jobline._arguments import number_given
from jobline._backoff import RETRY, Pauses
from jobline._push.batch import NOTHING, Batch, K, Own, Pushes, W
from jobline._push.calls import REPEAT_SECONDS_MAX
from jobline.errors import BufferFull

# Header keys of the pushes in one call together: each key is a column with a value for every push.
HEADER_KEYS_MAX = 32


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of a `PushBatcher`. `jobs`, `payload_bytes`: what may wait or be in flight in all.
    `batch_*`: what one call may carry; one job always fits. A push has up to `batch_header_keys`
    headers of its own. `flights`: concurrent calls, over all
    keys. `give_up_after`: seconds from the first push of a batch to its last try.
    """

    jobs: int = 10_000
    payload_bytes: int = 64 << 20
    batch_jobs: int = 1_000
    batch_bytes: int = 4 << 20
    batch_header_keys: int = HEADER_KEYS_MAX
    flights: int = 32
    give_up_after: float = 30.0


def limits_given(buffer_jobs: int, buffer_bytes: int, timeout: float) -> BatchLimits:
    """Returns the limits of a client. Raises InvalidArgument for a buffer without room."""
    return BatchLimits(
        jobs=number_given("buffer_jobs", buffer_jobs, minimum=1),
        payload_bytes=number_given("buffer_bytes", buffer_bytes, minimum=1),
        give_up_after=min(timeout, REPEAT_SECONDS_MAX),
    )


@dataclass(slots=True, eq=False)
class _Pending(Generic[K, W]):
    """Pushes of one key: the batch in flight, batches to send next, and pushes that gather."""

    key: K
    pushes: Pushes[W] = field(default_factory=Pushes)
    payload_bytes: int = 0
    since: float = 0.0

    next: deque[Batch[K, W]] = field(default_factory=deque)
    in_flight: Batch[K, W] | None = None
    not_before: float = 0.0


class PushBatcher(Generic[K, W]):
    """Batches the pushes of one client, one call in flight per key."""

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
        self._idle: dict[
            K, None
        ] = {}  # keys with something to send and no call in flight, in order
        self._flights = 0
        self.jobs = 0
        self.payload_bytes = 0

    def add(self, now: float, key: K, payload: bytes, waiter: W, own: Own = NOTHING) -> bool:
        """Adds a push; returns True if `batches_to_send` now has something to send.

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
        pushes = pending.pushes
        if not pushes.waiters:
            pending.since = now
        pushes.payloads.append(payload)
        pushes.own.append(own)
        pushes.waiters.append(waiter)
        pending.payload_bytes += size
        self.jobs += 1
        self.payload_bytes += size
        return pending.in_flight is None

    def withdraw(self, key: K, waiter: W) -> bool:
        """Removes a push; returns False if it was sent already and may be stored."""
        pending = self._pending.get(key)
        if pending is None or waiter not in pending.pushes.waiters:
            return False
        size = pending.pushes.remove(pending.pushes.waiters.index(waiter))
        pending.payload_bytes -= size
        self.jobs -= 1
        self.payload_bytes -= size
        self._queue_or_forget(pending)
        return True

    def batches_to_send(self, now: float) -> list[Batch[K, W]]:
        """Returns the batches to send now. Report each result to one of the `handle_…` methods."""
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
            pending.in_flight = batch
            self._flights += 1
            batches.append(batch)
        return batches

    def next_deadline(self) -> float | None:
        """Returns when `batches_to_send` has something to send, if nothing else happens."""
        if self._flights >= self._limits.flights:
            return None
        return min((self._pending[key].not_before for key in self._idle), default=None)

    def handle_done(self, batch: Batch[K, W], *, is_known: bool = True) -> None:
        """Ends a batch: it was answered, well or with a refusal that is passed on, or (not
        `is_known`) it was given up and may be stored. Frees its room in the buffer.
        """
        self._over(batch.request_id, is_known)
        self.jobs -= len(batch.waiters)
        self.payload_bytes -= batch.payload_bytes
        self._queue_or_forget(self._end_call(batch))

    def handle_unknown(self, now: float, batch: Batch[K, W]) -> bool:
        """Handles a call without a definite answer. True: the batch is sent again after a pause;
        False: it is given up.
        """
        pause = self._pauses.after(batch.tries, self._chance)
        if now + pause > batch.give_up_at:
            self.handle_done(batch, is_known=False)
            return False
        pending = self._end_call(batch)
        pending.next.appendleft(batch)
        pending.not_before = now + pause
        self._queue_or_forget(pending)
        return True

    def handle_refused(self, batch: Batch[K, W]) -> bool:
        """Handles a refusal of something in the batch. True: it is split, and its parts are sent
        one after the other; False: it was a single push, and is done.
        """
        if len(batch.waiters) == 1:
            self.handle_done(batch)
            return False
        self._over(batch.request_id, True)
        pending = self._end_call(batch)
        for pushes in reversed(batch.pushes.parts()):
            pending.next.appendleft(
                self._batch(batch.key, pushes, pushes.payload_bytes(), batch.give_up_at)
            )
        self._queue_or_forget(pending)
        return True

    def _end_call(self, batch: Batch[K, W]) -> _Pending[K, W]:
        pending = self._pending[batch.key]
        pending.in_flight = None
        pending.not_before = 0.0
        self._flights -= 1
        return pending

    def _queue_or_forget(self, pending: _Pending[K, W]) -> None:
        """Queues pending pushes for sending, or forgets a key that has none left."""
        if pending.in_flight is not None:
            return
        if pending.next or pending.pushes.waiters:
            self._idle[pending.key] = None
        else:
            self._idle.pop(pending.key, None)
            del self._pending[pending.key]

    def _cut(self, pending: _Pending[K, W]) -> Batch[K, W]:
        """Removes and returns the first pushes, as many as one call may carry."""
        count = self._count_that_fits(pending)
        pushes, size = pending.pushes, pending.payload_bytes
        if count == len(pushes.waiters):
            pending.pushes = Pushes()
        else:
            pushes = pushes.take(count)
            size = pushes.payload_bytes()
        pending.payload_bytes -= size
        give_up_at = pending.since + self._limits.give_up_after
        return self._batch(pending.key, pushes, size, give_up_at)

    def _count_that_fits(self, pending: _Pending[K, W]) -> int:
        limits, pushes = self._limits, pending.pushes
        count = min(len(pushes.waiters), limits.batch_jobs)
        if not pushes.have_payloads_alone():
            count = min(count, pushes.count_with_header_keys(limits.batch_header_keys))
        if pending.payload_bytes <= limits.batch_bytes:
            return count
        total = 0
        for index in range(count):
            total += len(pushes.payloads[index])
            if total > limits.batch_bytes:
                return max(index, 1)
        return count

    def _batch(self, key: K, pushes: Pushes[W], size: int, give_up_at: float) -> Batch[K, W]:
        """Returns a batch. Job keys make a retry safe by themselves; other calls get a number."""
        request_id = "" if pushes.all_have_keys() else self._request_ids()
        return Batch(key, pushes, size, give_up_at, request_id)
