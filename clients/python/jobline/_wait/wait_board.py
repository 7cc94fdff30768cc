"""`WaitBoard`: who waits for which jobs, and by which call.

Who makes the calls adds waiters, opens `calls_to_open`, reports what each call says and how it
ends, and asks again at `next_deadline`. What ends a wait by its own time is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from jobline._backoff import RETRY, Pauses, as_asked
from jobline._requests import NOT_OURS
from jobline._wait.wait_call import IDS_MAX, WaitCall, Waiter
from jobline.errors import DataLoss, Internal, JoblineError
from jobline.v1 import job_service_pb2 as pb

# Up to so many open calls a wait does not gather with others.
CALLS_AT_ONCE = 8

# With more, a call begins so many seconds after the last one.
GATHER_SECONDS = 0.005

# With so many, the next call takes over the jobs of the smallest.
CALLS_MAX = 64

# After so many seconds the server has heard of the call that took over.
HANDOVER_SECONDS = 5.0


@dataclass(slots=True, eq=False)
class _Wanted:
    """A job that somebody waits for, and the newest call that asks for it; None: the next one."""

    waiters: dict[Waiter, None]
    call: WaitCall | None = None


class WaitBoard:
    """The waits of one client."""

    def __init__(self, chance: Callable[[], float], pauses: Pauses = RETRY) -> None:
        self._chance = chance
        self._pauses = pauses
        self._wanted: dict[int, _Wanted] = {}
        self._pending: dict[int, None] = {}
        # Jobs to ask for at once: one of their call was refused.
        self._apart: list[list[int]] = []
        self._calls: dict[WaitCall, None] = {}
        self._opened = float("-inf")
        self._not_before = float("-inf")
        self._tries = 0
        self._trouble: JoblineError | None = None

    @property
    def calls(self) -> int:
        """How many calls are open."""
        return len(self._calls)

    def has(self, call: WaitCall) -> bool:
        """Returns whether a call is open and wanted."""
        return call in self._calls

    def add(self, waiter: Waiter) -> None:
        """Adds a caller. What an open call asks for already is not asked for again."""
        for id_ in waiter.ids:
            wanted = self._wanted.get(id_)
            if wanted is None:
                self._wanted[id_] = _Wanted({waiter: None})
                self._pending[id_] = None
            else:
                wanted.waiters[waiter] = None

    def leave(self, waiter: Waiter) -> None:
        """Removes a caller; hangs up calls that nobody needs any more."""
        for id_ in waiter.ids:
            wanted = self._wanted.get(id_)
            if wanted is None or waiter not in wanted.waiters:
                continue
            del wanted.waiters[waiter]
            if not wanted.waiters:
                self._forget(id_, wanted)

    def trouble_of(self, waiter: Waiter) -> JoblineError | None:
        """Returns why the jobs of a caller are not asked for at this moment; None if they are."""
        is_pending = any(id_ in self._pending for id_ in waiter.ids)
        return self._trouble.twin() if self._trouble is not None and is_pending else None

    def deadline_of(self, waiter: Waiter) -> float | None:
        """Returns the next deadline if jobs of this caller are not asked for yet."""
        is_asked = all(self._wanted[id_].call for id_ in waiter.ids if id_ in self._wanted)
        return None if is_asked else self.next_deadline()

    def next_deadline(self) -> float | None:
        """Returns when to ask for calls to open; None if there is nothing to ask for."""
        if self._apart:
            return self._opened
        if not self._pending:
            return None
        pause = GATHER_SECONDS if len(self._calls) >= CALLS_AT_ONCE else 0.0
        return max(self._not_before, self._opened + pause)

    def calls_to_open(self, now: float) -> list[WaitCall]:
        """Returns the calls to make now."""
        self._end_handovers(now)
        apart, self._apart = self._apart, []
        calls = [self._open(now, ids) for ids in map(self._still_wanted, apart) if ids]
        deadline = self.next_deadline()
        while self._pending and deadline is not None and now >= deadline:
            ids = list(islice(self._pending, IDS_MAX))
            for id_ in ids:
                del self._pending[id_]
            calls.append(self._open(now, ids, self._to_take_over(IDS_MAX - len(ids))))
        return calls

    def take(self, now: float, call: WaitCall, response: pb.WaitResponse) -> None:
        """Handles what a call says: tells the callers that wait for this job."""
        if call not in self._calls:
            return
        id_ = response.id
        if id_ not in call.ids:
            call.hang_up()
            text = f"the answer to a wait is of job {id_}, which was not asked for"
            self.end(now, call, Internal(text, NOT_OURS))
            return
        call.ids.discard(id_)
        self._tries, self._trouble = 0, None
        wanted = self._wanted.get(id_)
        if wanted is None:
            return
        if response.not_found and wanted.call is call and self._hand_back(id_, wanted, call):
            return
        self._forget(id_, wanted)
        others = False
        for waiter in wanted.waiters:
            # Who opens what is sealed in it changes it.
            waiter.put(_copy(response) if others else response)
            others = True

    def end(self, now: float, call: WaitCall, error: JoblineError | None = None) -> None:
        """Handles the end of a call: what it still owes is asked for again, after a pause."""
        if call not in self._calls:
            return
        owed = [id_ for id_ in call.ids if self._is_asked_by(id_, call)]
        del self._calls[call]
        call.needed = 0
        for id_ in owed:
            self._hand_back(id_, self._wanted[id_], call)
        self._close_unneeded(call.olds)
        owed = [id_ for id_ in owed if self._wanted[id_].call is call]
        for id_ in owed:
            self._wanted[id_].call = None
        if error is None or error.retryable:
            self._ask_again(now, owed, error)
        elif isinstance(error, DataLoss) and len(owed) > 1:
            # One of them is damaged, and the answer does not say which.
            half = len(owed) // 2
            self._apart += [owed[:half], owed[half:]]
        else:
            self._refuse(self._waiters_of(owed), error)

    def _ask_again(self, now: float, owed: list[int], error: JoblineError | None) -> None:
        if not owed:
            return
        self._pending.update(dict.fromkeys(owed))
        self._trouble = error
        if now >= self._not_before:  # not by each of the calls that broke together
            self._tries += 1
            asked = None if error is None else error.retry_after
            pause = as_asked(asked, self._pauses.after(self._tries, self._chance))
            self._not_before = now + pause
        if error is not None:
            waiters = self._waiters_of(owed)
            self._refuse([one for one in waiters if one.until < self._not_before], error)

    def _refuse(self, waiters: Iterable[Waiter], error: JoblineError) -> None:
        for waiter in waiters:
            self.leave(waiter)
            waiter.put(error.twin())

    def _open(self, now: float, ids: list[int], olds: Iterable[WaitCall] = ()) -> WaitCall:
        before: list[WaitCall] = []
        for old in olds:
            ids += [id_ for id_ in old.ids if self._is_asked_by(id_, old)]
            before += [old, *old.olds]
            old.needed, old.is_old, old.olds = 0, True, []
        until = max(waiter.until for waiter in self._waiters_of(ids))
        call = WaitCall(set(ids), now, max(0.0, until - now), len(ids), before)
        for id_ in ids:
            self._wanted[id_].call = call
        self._calls[call] = None
        self._opened = now
        return call

    def _to_take_over(self, room: int) -> list[WaitCall]:
        """Returns the smallest calls, if too many are open."""
        open_ = [call for call in self._calls if not call.is_old]
        if len(open_) < CALLS_MAX:
            return []
        found: list[WaitCall] = []
        for call in sorted(open_, key=lambda one: one.needed)[: CALLS_MAX // 2]:
            room -= call.needed
            if room < 0:
                break
            found.append(call)
        return found

    def _end_handovers(self, now: float) -> None:
        for call in [one for one in self._calls if one.olds]:
            if now >= call.opened + HANDOVER_SECONDS:
                olds, call.olds = call.olds, []
                self._close_unneeded(olds)

    def _hand_back(self, id_: int, wanted: _Wanted, call: WaitCall) -> bool:
        """Leaves a job to an older call that asks for it, too, and returns whether there is one. It
        was open when the job ended, and knows how, even if the job is not kept.
        """
        for old in call.olds:
            if id_ in old.ids and old in self._calls:
                wanted.call = old
                old.needed += 1
                self._needs_one_less(call)
                return True
        return False

    def _forget(self, id_: int, wanted: _Wanted) -> None:
        del self._wanted[id_]
        self._pending.pop(id_, None)
        if wanted.call is not None:
            self._needs_one_less(wanted.call)

    def _needs_one_less(self, call: WaitCall) -> None:
        call.needed -= 1
        # One that has said everything ends by itself.
        if call.needed <= 0 and call.ids and not call.is_old:
            self._close_unneeded([call])

    def _close_unneeded(self, calls: list[WaitCall]) -> None:
        for call in calls:
            call.is_old = False
            if call.needed <= 0 and self._calls.pop(call, call) is None:
                call.hang_up()
                self._close_unneeded(call.olds)

    def _is_asked_by(self, id_: int, call: WaitCall) -> bool:
        wanted = self._wanted.get(id_)
        return wanted is not None and wanted.call is call

    def _still_wanted(self, ids: list[int]) -> list[int]:
        return [id_ for id_ in ids if self._is_free(id_)]

    def _is_free(self, id_: int) -> bool:
        wanted = self._wanted.get(id_)
        return wanted is not None and wanted.call is None and id_ not in self._pending

    def _waiters_of(self, ids: Iterable[int]) -> dict[Waiter, None]:
        return {waiter: None for id_ in ids for waiter in self._wanted[id_].waiters}


def _copy(response: pb.WaitResponse) -> pb.WaitResponse:
    copy = pb.WaitResponse()
    copy.CopyFrom(response)
    return copy
