"""Wraps handlers, so that a call is authenticated before its request is decoded, and asked for
before its handler runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

from jobline.v1 import job_service_pb2
from jobline_server.auth.authenticator import Authenticator, required
from jobline_server.auth.certificates import names_of
from jobline_server.auth.grants import READ, Caller
from jobline_server.auth.refused import NotAuthenticated
from jobline_server.rpc.access.asking import Ask, Denied
from jobline_server.rpc.access.checks import Check
from jobline_server.rpc.access.credentials import (
    AUTHORIZATION,
    Credentials,
    authorization_of,
    certificate_of,
)
from jobline_server.rpc.access.open_calls import OpenCall, OpenCalls
from jobline_server.rpc.access.refusals import Refusals
from jobline_server.rpc.access.rules import Rule, rule_of
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.caller import CALLER
from jobline_server.rpc.decoding import Decode
from jobline_server.rpc.errors import Status, StatusError
from jobline_server.rpc.guard import (
    Bidi,
    Context,
    Frames,
    Reply,
    ServeBidi,
    ServerStream,
    Unary,
)
from jobline_server.runtime.runtime import Runtime

Headers = Mapping[str, str]


class Access:
    """Authenticates callers and asks their roles. `wall_ms` is the time that tokens end by."""

    def __init__(
        self,
        authenticator: Authenticator,
        runtime: Runtime,
        admission: Admission,
        wall_ms: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        self.authenticator = authenticator
        self.refusals = Refusals(clock)
        self.open_calls = OpenCalls(self._find)
        self._runtime = runtime
        self._admission = admission
        self._wall_ms = wall_ms

    def is_open(self, path: str) -> bool:
        """Returns whether a method is for everybody. Raises KeyError for one without a rule."""
        return rule_of(path) is None

    def unary(self, path: str, function: Unary, decode: Decode) -> Unary:
        """Returns the guarded method, on the bytes of a request."""
        rule = _rule(path)
        check, show = rule.check, rule.show
        known, wall_ms, runtime = self.authenticator.known, self._wall_ms, self._runtime

        async def call(raw: bytes, context: Context) -> Reply:
            caller = None
            try:
                caller = known(authorization_of(context))
                if caller is None or (caller.until_ms is not None and caller.until_ms <= wall_ms()):
                    caller = None
                    caller = await self._find(self._shown(context))
                ask, request = Ask(caller, runtime), decode(raw)
                pending = check(ask, request)
                answer = None if pending is None else await pending
            except (NotAuthenticated, Denied) as refused:
                status = self._refused(path, refused, caller, context)
            else:
                if answer is None:
                    CALLER.set(caller)
                    answer = await function(request, context)
                    if show is not None:
                        answer = show(ask, answer)
                return answer
            raise StatusError(status)

        return call

    def server_stream(self, path: str, function: ServerStream, decode: Decode) -> ServerStream:
        """Returns the guarded method, on the bytes of a request."""
        rule = _rule(path)

        async def call(raw: bytes, context: Context) -> AsyncGenerator[Reply, None]:
            caller = None
            try:
                shown = self._shown(context)
                caller = await self._find(shown)
                ask, request = Ask(caller, self._runtime, is_long=True), decode(raw)
                pending = rule.check(ask, request)
                if pending is not None:
                    await pending
            except (NotAuthenticated, Denied) as refused:
                status = self._refused(path, refused, caller, context)
            else:
                for job_id in ask.hidden:
                    yield job_service_pb2.WaitResponse(id=job_id, not_found=True)
                if ask.is_answered:
                    return
                CALLER.set(caller)
                messages = function(request, context)
                # Not kept for the wait: it may have ten thousand ids.
                del request
                opened = OpenCall(ask, shown, self._admission, self._wall_ms)
                async with aclosing(self._followed(messages, opened, rule)) as followed:
                    async for message in followed:
                        yield message
                if opened.refusal is None:
                    return
                status = self._refused(path, opened.refusal, ask.caller, context)
            raise StatusError(status)

        return call

    async def _followed(
        self, messages: AsyncGenerator[Reply, None], opened: OpenCall, rule: Rule
    ) -> AsyncGenerator[Reply, None]:
        """Yields the replies of an open call until its caller may have them no more."""
        with self._open(opened):
            try:
                async with aclosing(messages):
                    async for message in messages:
                        yield message if rule.show is None else rule.show(opened.ask, message)
                        if opened.refusal is not None:
                            return
            except asyncio.CancelledError:
                if opened.refusal is None or opened.task is None:
                    raise
                opened.task.uncancel()

    def bidi(self, path: str, function: Bidi, decode: Decode) -> ServeBidi:
        """Returns the guarded method, on a call's context."""
        check = _rule(path).check

        async def call(context: Context) -> None:
            caller = None
            try:
                shown = self._shown(context)
                caller = await self._find(shown)
                CALLER.set(caller)
                ask = Ask(caller, self._runtime, is_long=True)
                opened = OpenCall(ask, shown, self._admission, self._wall_ms)
                with self._open(opened):
                    await function(CheckedFrames(context, decode, opened, check))
                if opened.refusal is None:
                    return
                status = self._refused(path, opened.refusal, ask.caller, context)
            except (NotAuthenticated, Denied) as refused:
                status = self._refused(path, refused, caller, context)
            raise StatusError(status)

        return call

    @contextmanager
    def _open(self, opened: OpenCall) -> Iterator[None]:
        self.open_calls.add(opened)
        try:
            yield
        finally:
            self.open_calls.remove(opened)
            opened.stop = None

    # Callers.

    def _shown(self, context: Context) -> Credentials:
        authorization = authorization_of(context)
        if authorization or not self.authenticator.takes_certificates:
            return Credentials(authorization)
        return Credentials("", certificate_of(context))

    async def _find(self, shown: Credentials) -> Caller:
        if shown.authorization:
            return await self.authenticator.caller_of(shown.authorization)
        if shown.certificate:
            return self.authenticator.certified(names_of(shown.certificate))
        raise required()

    def _refused(
        self, path: str, refused: NotAuthenticated | Denied, caller: Caller | None, context: Context
    ) -> Status:
        return self.refusals.status_of(path, refused, caller, context.peer())

    # HTTP.

    async def check_head(
        self, path: str, headers: Headers, certificate: bytes, peer: str, *, reads: bool = False
    ) -> Status | None:
        """Returns the refusal of a request by its head, before its body is read: of a caller who is
        not known, or, with `reads`, who may not read all queues.
        """
        caller = None
        try:
            caller = await self._find(Credentials(headers.get(AUTHORIZATION, ""), certificate))
            if reads:
                Ask(caller, self._runtime).need_all(READ)
        except (NotAuthenticated, Denied) as refused:
            return self.refusals.status_of(path, refused, caller, peer)
        return None


class CheckedFrames(Frames):
    """The messages of a bidirectional call, each checked when it is read."""

    __slots__ = ("_check", "_opened")

    def __init__(self, context: Context, decode: Decode, opened: OpenCall, check: Check) -> None:
        super().__init__(context, decode)
        self._opened = opened
        self._check = check

    async def read(self) -> Any:
        """Returns the next message; None when the caller has half-closed or is gone."""
        message = await super().read()
        if self._opened.refusal is not None:
            raise self._opened.refusal
        if message is None:
            return None
        pending = self._check(self._opened.ask, message)
        if pending is not None:
            await pending
        return message

    def attach(self, stop: Callable[[], None]) -> None:
        """Takes what ends the handler."""
        self._opened.stop = stop
        if self._opened.refusal is not None:
            stop()


def _rule(path: str) -> Rule:
    rule = rule_of(path)
    if rule is None:
        raise ValueError(f"{path} is open")
    return rule
