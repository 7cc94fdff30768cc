"""Calls that stay open: they are asked again when the rules were read again, and end when the token
of their caller does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from jobline_server.auth.grants import Caller
from jobline_server.auth.refused import NotAuthenticated, expired
from jobline_server.rpc.access.asking import Ask, Denied
from jobline_server.rpc.access.credentials import Credentials
from jobline_server.rpc.admission import Admission

# A timer looks at the clock this often, as that may be set.
TIMER_SECONDS_MAX = 600.0
ASKED_AT_ONCE = 100
# Each job that a call waits for is looked up: so many take as long as another call.
IDS_PER_CALL = 20

Find = Callable[[Credentials], Awaitable[Caller]]
Refusal = NotAuthenticated | Denied


class OpenCall:
    """A call that stays open. `stop` ends its handler, where that must not be cancelled."""

    __slots__ = ("_admission", "_timer", "_wall_ms", "ask", "refusal", "shown", "stop", "task")

    def __init__(
        self, ask: Ask, shown: Credentials, admission: Admission, wall_ms: Callable[[], int]
    ) -> None:
        self.ask = ask
        self.shown = shown
        self.task = asyncio.current_task()
        self.stop: Callable[[], None] | None = None
        self.refusal: Refusal | None = None
        self._admission = admission
        self._wall_ms = wall_ms
        self._timer: asyncio.TimerHandle | None = None

    def end(self, refusal: Refusal) -> None:
        """Ends the call with a refusal, at its next step."""
        if self.refusal is not None:
            return
        self.refusal = refusal
        if self.stop is not None:
            self.stop()
        # gRPC cannot send a status during a write; it ends right after.
        elif self.task is not None and not self._admission.is_writing(self.task):
            self.task.cancel()

    def set_timer(self) -> None:
        """Ends the call when its caller's token does."""
        self.clear_timer()
        until_ms = self.ask.caller.until_ms
        if until_ms is None:
            return
        left = (until_ms - self._wall_ms()) / 1_000
        if left <= 0:
            self.end(expired("the token has expired"))
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(min(left, TIMER_SECONDS_MAX), self.set_timer)

    def clear_timer(self) -> None:
        """Takes the timer away."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class OpenCalls:
    """All calls that stay open."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._calls: dict[OpenCall, None] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[OpenCall]:
        return iter([*self._calls])

    def add(self, call: OpenCall) -> None:
        """Adds a call."""
        self._calls[call] = None
        call.set_timer()

    def remove(self, call: OpenCall) -> None:
        """Removes a call, which is over."""
        call.clear_timer()
        self._calls.pop(call, None)

    async def ask_again(self) -> None:
        """Asks again for all calls, and ends those that would be refused now."""
        asked = 0
        for call in self:
            try:
                caller = await self._find(call.shown)
                call.ask.again(caller)
            except (NotAuthenticated, Denied) as refused:
                call.end(refused.with_traceback(None))
            else:
                call.set_timer()
            asked += 1 + len(call.ask.waited) // IDS_PER_CALL
            if asked >= ASKED_AT_ONCE:
                asked = 0
                await asyncio.sleep(0)  # noqa: TID251  # it does not wait
