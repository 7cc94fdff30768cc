"""Confirms: replies to the settles of a stream's frames, each after the commit that holds it.

The settles of one frame share one wait, however many they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jobline_server.dispatch.frames import Settle
from jobline_server.dispatch.session import Phase, Session, entries_of
from jobline_server.engine.commands import NotDone, Refused
from jobline_server.runtime.calls.release_checks import check_limiters
from jobline_server.runtime.calls.settling import Settled, Settling
from jobline_server.runtime.core import Core


class Confirms:
    """Settles for one session. Calls `ready` when confirms wait to be sent, and when it
    `has_failed`: a settle cannot be answered, and the worker must not take silence for an answer.

    `pending` counts what is decided and not confirmed: settles, and outcomes that are not DONE.
    """

    def __init__(
        self,
        core: Core,
        settling: Settling,
        session: Session,
        *,
        ready: Callable[[], None],
    ) -> None:
        self._core = core
        self._settling = settling
        self._session = session
        self._ready = ready
        self.has_failed = False
        self.pending = 0
        self._explaining: set[asyncio.Task[None]] = set()

    def handle(self, settles: Sequence[Settle]) -> Iterator[None]:
        """Decides the settles of a frame. Yields between two slices of many. A session that ended
        meanwhile gets no answer to what is left: its worker settles that again on its next stream.
        Refuses all if a release names a limiter that its job does not pass.
        """
        decided: list[Settled] = []

        def settled(one: Settled) -> None:
            self.pending += entries_of(one.exceptions, one.dead)
            decided.append(one)

        for index, settle in enumerate(settles):
            if settle.releases:
                check_limiters(self._core, settle.releases, f"settles[{index}].releases")
        for _ in settles:
            self._session.handle_settle()
        for _ in self._settling.decide(settles, settled):
            yield
            if self._session.phase is Phase.ENDED:
                return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(partial(self._handle_committed, settles, decided))
        self._core.commits.resolve_after_commit([(future, None)])

    def _handle_committed(
        self, settles: Sequence[Settle], decided: Sequence[Settled], future: asyncio.Future[None]
    ) -> None:
        if future.exception() is not None:
            self._fail()
            return
        if self._core.slots.is_partial:
            for settle, one in zip(settles, decided, strict=True):
                self.pending -= entries_of(one.exceptions, one.dead)
                self._settling.note_lost(settle, one)
                self.pending += entries_of(one.exceptions, one.dead)
        unknown: list[Settled] = []
        for one in decided:
            if one.unknown is None:
                self._confirm(one, one.exceptions)
            else:
                unknown.append(one)
        if unknown:
            task = asyncio.get_running_loop().create_task(self._explain(unknown))
            self._explaining.add(task)
            task.add_done_callback(self._explaining.discard)
        self._ready()

    async def _explain(self, decided: Sequence[Settled]) -> None:
        """Answers settles of which the ended store may know more."""
        try:
            for one in decided:
                self._confirm(one, await self._settling.explain(one))
                self._ready()
        except Exception as error:
            self._fail()
            if not isinstance(error, Refused):
                raise

    def _confirm(self, settled: Settled, exceptions: NotDone) -> None:
        self.pending -= entries_of(settled.exceptions, settled.dead)
        self._session.confirm(settled.seq, exceptions, settled.dead)

    def _fail(self) -> None:
        self.has_failed = True
        self._ready()
