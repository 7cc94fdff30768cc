"""A port of the native transport: unary calls through HTTP/2 in Rust, by pygrpc-native's
`NativeGrpcFront`.

pygrpc-native could serve any handler of grpc.aio. This module serves only ours, which are
coroutines from bytes to bytes and need nothing of a call but to end it: a call costs one task.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from pygrpc_native import EVENT_CANCEL, NativeGrpcFront

from jobline_server.rpc.admission import Admission
from jobline_server.rpc.delivery import handle_untaken
from jobline_server.rpc.errors import overload_status
from jobline_server.rpc.gates import CAME_THROUGH, RETRY_AFTER_MS
from jobline_server.rpc.guard import UnaryAnswer
from jobline_server.rpc.limits import NATIVE_CALLS_MAX
from jobline_server.rpc.native_backlog import OPEN_MAX, Backlog
from jobline_server.rpc.native_calls import NativeCall, Waiting
from jobline_server.rpc.native_lines import Line, RefusableLine
from jobline_server.rpc.native_refusals import Refusals
from jobline_server.rpc.native_settles import SettleLine
from jobline_server.rpc.tls.callers import MARK, MARK_BYTES, UNMARKED, DoorCallers
from jobline_server.rpc.unread import UnreadReplies

# Calls taken from the front in one batch: as many as there are, as the thread that takes them must
# wait for the loop each time.
TAKEN_AT_ONCE = 1_024
# These are taken in an overload, too: what they end makes room, and a supervisor that hears nothing
# would end the server.
SETTLES = ("/Ack", "/Fail", "/Release", "/Extend")
HEALTH = ("/Check",)
# At a stop: how long callers have to read their replies, and how often the unread are counted.
READING_SECONDS_MAX = 1.0
COUNT_SECONDS = 0.005
# As of grpc-core; a mark of a door is not counted. HTTP/2 counts 32 bytes beside a field.
METADATA_BYTES_MAX = 16 << 10
MARK_BYTES_COUNTED = len(MARK) + 2 * MARK_BYTES + 32
ENDING = "the server stops"

# What the front takes as a status: made once, as it is for those that cannot be served.
_refusal = overload_status(RETRY_AFTER_MS)
OVERLOADED = (_refusal.code.value[0], _refusal.message, [*_refusal.metadata])


class _Method(NamedTuple):
    """A method, and how its calls enter their line: in an overload, for which there is room then,
    and else. Those that are spared are never refused.
    """

    path: str
    answer: UnaryAnswer
    line: Line
    is_spared: bool
    enter: tuple[Callable[[Waiting], None], Callable[[Waiting], None]]


class NativePort:
    """Listens at one address. Raises OSError where it cannot. `reads_metadata`: handlers want
    it. `callers`: calls come through a door, and these are its callers.
    """

    def __init__(
        self,
        address: str,
        answers: Mapping[str, UnaryAnswer],
        options: Mapping[str, int],
        admission: Admission,
        *,
        reads_metadata: bool = False,
        callers: DoorCallers | None = None,
    ) -> None:
        self._front = NativeGrpcFront(
            address,
            [],
            call_details=True,  # else it does not report cancelled calls
            metrics=True,  # for `UnreadReplies` and `Backlog`
            keepalive_time_ms=options["grpc.keepalive_time_ms"],
            keepalive_timeout_ms=options["grpc.keepalive_timeout_ms"],
            keepalive_permit_without_calls=bool(options["grpc.keepalive_permit_without_calls"]),
            reuse_port=bool(options["grpc.so_reuseport"]),
            max_concurrent_streams=NATIVE_CALLS_MAX,
            max_metadata_size=METADATA_BYTES_MAX + (0 if callers is None else MARK_BYTES_COUNTED),
        )
        self._reads_metadata = reads_metadata or callers is not None
        self._callers = callers
        self._admission = admission
        self._message_bytes_max = options["grpc.max_receive_message_length"]
        self._calls: dict[int, NativeCall] = {}
        self._backlog = Backlog(self._front)
        self._unread = UnreadReplies(self._front, self._calls, admission)
        overload = admission.overload
        self._settles = SettleLine(self._serve, overload.now)
        self._health = SettleLine(self._serve, overload.now)
        self._others = RefusableLine(overload, self._serve, self._refuse_waiting, self._unanswered)
        self._methods = [self._method(path, answer) for path, answer in answers.items()]
        self._refusals = Refusals(lambda number: self._front.fail(number, *OVERLOADED))
        overload.held.append(self._refusals.__len__)
        # Methods of calls that were refused and are not counted yet.
        self._refused: list[int] = []
        self._loop = asyncio.get_running_loop()
        self._is_ending = False
        self.number: int = self._front.bound_port
        """The number of the port; 0 for a socket."""

    def _method(self, path: str, answer: UnaryAnswer) -> _Method:
        others = self._others
        if path.endswith(SETTLES + HEALTH):
            line = self._health if path.endswith(HEALTH) else self._settles
            return _Method(path, answer, line, is_spared=True, enter=(line.enter,) * 2)
        return _Method(path, answer, others, is_spared=False, enter=(others.begin, others.add))

    def start(self, streams: Path) -> None:
        """Starts taking calls; all but unary ones go to the socket `streams`."""
        self._front.set_fallback(str(streams))
        self._front.add_methods([(each.path, False) for each in self._methods])
        self._front.start()
        threading.Thread(target=self._receive, name="jobline-native", daemon=True).start()

    def _receive(self) -> None:
        """Passes calls to the loop; runs in a thread, whose context the loop serves them in."""
        CAME_THROUGH.set(self)
        receive: Callable[[int], Sequence[tuple[Any, ...]] | None] = self._front.recv_batch
        take, now = self._take, self._admission.overload.now
        if self._reads_metadata:
            receive, take = self._front.recv_batch_details, self._take_details
        while (events := receive(TAKEN_AT_ONCE)) is not None:
            try:
                self._loop.call_soon_threadsafe(take, events, now())
            except RuntimeError:  # the loop was closed
                self._front.close()
                return

    def _take(self, events: Sequence[tuple[Any, ...]], came: float) -> None:
        calls, methods, overload, room = self._calls, self._methods, self._admission.overload, 0
        if not overload.is_over:
            room = overload.room(came, self._others.serving(), self._is_behind)
        most = room
        for kind, number, method, raw, peer in events:
            if kind == EVENT_CANCEL:
                self._cancel(number)
            elif self._is_ending:
                self._fail(number, grpc.StatusCode.UNAVAILABLE, ENDING)
            elif len(raw) > self._message_bytes_max:
                message = f"a message has at most {self._message_bytes_max} bytes, not {len(raw)}"
                self._fail(number, grpc.StatusCode.RESOURCE_EXHAUSTED, message)
            elif overload.is_over or room or methods[method].is_spared:
                own = methods[method]
                calls[number] = call = NativeCall(own.path, own.answer, peer, own.line)
                own.enter[overload.is_over](Waiting(number, method, call, raw, came))
                room -= bool(room and not own.is_spared)
            else:
                self._refuse(number, method)
        if not overload.is_over:
            overload.note(most - room, len(self._refused))
        if self._refused:
            self._count_refused()
        if self._others.waiting:
            self._others.go_on()

    def _refuse(self, number: int, method: int) -> None:
        self._refused.append(method)
        self._refusals.add(number)

    def _refuse_waiting(self, calls: Sequence[Waiting]) -> None:
        for one in calls:
            del self._calls[one.number]
            self._refuse(one.number, one.method)
        self._count_refused()

    def _count_refused(self) -> None:
        """Counts all at once: to count is as much work as to refuse."""
        for method, calls in Counter(self._refused).items():
            self._admission.overload.count(self._methods[method].path, calls)
        self._refused.clear()

    def _cancel(self, number: int) -> None:
        call = self._calls.get(number)
        if call is None:
            self._refusals.forget(number)
            return
        if call.task is None:
            call.line.give_up(call)
            del self._calls[number]
            return
        call.is_cancelled = True
        call.task.cancel()
        if not call.has_begun:  # its task never runs, and cannot do this
            del self._calls[number]
            call.line.end(call)
            call.task = None

    def _unanswered(self) -> int:
        """Returns how many calls are not answered yet, without settles and those that wait for
        jobs.
        """
        return self._others.unanswered() - self._admission.pulls.count_of(self)

    def _is_behind(self) -> bool:
        """Returns whether the transport has much to read and to send. What is open waits for it,
        but for settles that are not answered yet, and calls that wait for jobs, or for their
        refusals.
        """
        waiting = self._admission.pulls.count_of(self) + len(self._refusals)
        waiting += self._settles.unanswered() + self._health.unanswered()
        is_much = self._backlog.open_calls() - waiting >= OPEN_MAX
        return is_much and self._backlog.are_slow(self._admission.overload.now())

    def _take_details(self, events: Sequence[tuple[Any, ...]], came: float) -> None:
        self._take([event[:5] for event in events], came)
        # No task of a call has begun.
        for _, number, _, _, _, details in events:
            call = self._calls.get(number)
            if details is not None and call is not None:
                call.metadata = details[0]
                if self._callers is not None:
                    call.caller = self._callers.find(details[0])
                    if call.caller is None:
                        self._fail(number, UNMARKED.code, UNMARKED.message)
                        self._cancel(number)

    async def _serve(self, number: int, call: NativeCall, raw: bytes) -> None:
        call.has_begun = True
        try:
            reply = await call.answer(raw, call)
            if call.status is not None:
                self._front.fail(number, *call.status)
            elif self._front.respond(number, reply):
                self._unread.add(call.path, len(reply))
                return
            handle_untaken()
        except asyncio.CancelledError:
            if not call.is_cancelled and not self._is_ending:
                self._fail(number, grpc.StatusCode.CANCELLED, "the call was given up")
        finally:
            del self._calls[number]
            call.line.end(call)

    def _fail(self, number: int, code: grpc.StatusCode, message: str) -> None:
        self._front.fail(number, code.value[0], message)

    async def end_calls(self, grace_seconds: float) -> None:
        """Takes no more calls, waits up to `grace_seconds` for open ones, then cancels them."""
        self._is_ending = True
        self._refusals.tell_all()
        self._end_waiting(self._others)
        # Settles go on: they are the last that a worker says.
        deadline = self._loop.time() + grace_seconds
        while self._settles.waiting and self._loop.time() < deadline:  # noqa: ASYNC110  # as below
            await asyncio.sleep(COUNT_SECONDS)  # noqa: TID251  # there is no signal
        self._end_waiting(self._settles)
        self._end_waiting(self._health)
        tasks = [call.task for call in self._calls.values() if call.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=max(deadline - self._loop.time(), 0.0))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end_waiting(self, line: Line) -> None:
        for one in line.take_all():
            del self._calls[one.number]
            self._fail(one.number, grpc.StatusCode.UNAVAILABLE, ENDING)

    async def close(self) -> None:
        """Closes the connections, once callers have read their replies or the time is up: the front
        drops replies that are not sent.
        """
        deadline = self._loop.time() + READING_SECONDS_MAX
        while self._unread.count() and self._loop.time() < deadline:  # noqa: ASYNC110  # as below
            await asyncio.sleep(COUNT_SECONDS)  # noqa: TID251  # there is no signal
        await self._loop.run_in_executor(None, self._front.close)
