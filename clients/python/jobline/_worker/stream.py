"""`Stream`: keeps one call open at a time, and opens another when it breaks.

Blocking gRPC on a thread of its own. Only that thread reads a call, and only gRPC's thread writes
it (it pulls frames from a `Writer`). A call ends in this order: the writer is closed, the call is
cancelled, the reader leaves it, the channel is closed. Each call has a channel of its own, so that
a new stream never inherits a dead connection.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import grpc

from jobline import errors
from jobline._backoff import RECONNECT, as_asked
from jobline._channel import open_channel, target_of
from jobline._identity import Identity, Tls, Token, identity_of
from jobline._status import error_from_rpc
from jobline._stream.frames import Goaway, Received
from jobline._worker.log import ConnectionLog
from jobline._worker.shared_session import SharedSession
from jobline._worker.wakeup import Wakeup
from jobline.errors import JoblineError
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub

logger = logging.getLogger("jobline.worker")

# Seconds a writer sleeps at most; before `opened` there is no deadline to sleep until.
PAUSE_MAX = 60.0

# The reason of a refusal: another stream has this worker's session.
SESSION_TAKEN = "SESSION_TAKEN"
TOKEN_EXPIRED = "TOKEN_EXPIRED"
# Streams in a row that are refused for a token that has ended, where another may follow.
RENEWALS_MAX = 5

# Refusals of a stream that no second try changes.
_FATAL = (
    errors.InvalidArgument,
    errors.NotServed,
    errors.PermissionDenied,
    errors.TooLarge,  # it declares more than a stream may: 1,000 handlers
    errors.Unauthenticated,
)

# Refusals of something on an open stream: sent again, it would be refused again.
_MISTAKES = (errors.InvalidArgument, errors.NotServed, errors.ProtocolMistake, errors.TooLarge)


@dataclass(frozen=True, slots=True)
class Address:
    """The server's address, and what its callers show."""

    target: str
    identity: Identity


def address_of(
    target: str | None,
    credentials: grpc.ChannelCredentials | None,
    metadata: Mapping[str, str] | None,
    token: Token | None,
    tls: bool | Tls | None,
    *,
    insecure_token: bool,
) -> Address:
    """Returns the address of a worker's server. Raises InvalidArgument."""
    found = target_of(target)
    identity = identity_of(found, credentials, metadata, token, tls, insecure_token=insecure_token)
    return Address(found, identity)


class Writer:
    """Yields the frames of one call to gRPC's thread; its end half-closes the call. `failure` is
    the exception raised here, which gRPC would report as a call without a reply.
    """

    def __init__(self, session: SharedSession, wakeup: Wakeup) -> None:
        self._session = session
        self._wakeup = wakeup
        self._frames: deque[pb.StreamRequest] = deque()
        self._is_last = False
        self._is_closed = False
        self.failure: Exception | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pb.StreamRequest:
        while not self._is_closed:
            if self._frames:
                return self._frames.popleft()
            if self._is_last:
                break
            try:
                frames, pause = self._session.frames_to_send(self._wakeup)
            except Exception as error:
                self.failure = error
                raise
            self._frames.extend(frames)
            if pause is None:
                self._is_last = True
            elif not frames:
                self._wakeup.wait(min(pause, PAUSE_MAX))
        raise StopIteration

    def close(self) -> None:
        """Ends the frames, whichever thread waits for them."""
        self._is_closed = True
        self._wakeup.set()


# A stream that lived so long may be followed by another one at once, if the server asks for that.
STEADY_SECONDS = 1.0


class Stream:
    """Keeps a stream open until it is stopped."""

    def __init__(
        self,
        address: Address,
        session: SharedSession,
        take: Callable[[Received], None],
        ended: Callable[[JoblineError | None], None],
        log: ConnectionLog,
    ) -> None:
        self._address = address
        self._session = session
        self._log = log
        self._take = take
        self._ended = ended
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._call: Any = None
        self._goaway: Goaway | None = None
        self._leave_at = 0.0
        self._opened = False
        self._thread = threading.Thread(target=self._run, name="jobline-reader", daemon=True)

    def start(self) -> None:
        """Opens the first stream."""
        self._thread.start()

    @property
    def is_calling(self) -> bool:
        """Whether a call is open or opening."""
        return self._call is not None

    def hang_up(self) -> None:
        """Cancels the current call, if any; another one follows."""
        with self._lock:
            if self._call is not None:
                self._call.cancel()

    def stop(self) -> None:
        """Cancels the call and opens no other. Waits up to 5 seconds for the thread to end."""
        self._stopping.set()
        self.hang_up()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        failure: JoblineError | None = None
        try:
            tries = renewals = 0
            while not (self._stopping.is_set() or self._session.is_over):
                self._opened, self._goaway = False, None
                began = time.monotonic()
                error = self._one_call()
                # A stream that opens and breaks at once is no sign that the next will do better.
                lived = time.monotonic() - began
                was_good = self._opened and lived > RECONNECT.longest
                tries = 0 if was_good else tries + 1
                renewals = renewals + 1 if self._may_renew(error) else 0
                is_late = 0 < renewals < RENEWALS_MAX
                if isinstance(error, _FATAL) and not (self._opened or is_late):
                    failure = error
                    return
                if isinstance(error, _MISTAKES) and self._opened:
                    logger.error(
                        "the server refused what was said; it is not said again: %s", error
                    )
                    self._session.handle_refusal()
                if error is not None and error.reason == SESSION_TAKEN:
                    self._session.handle_taken()
                self._pause(error, tries, lived)
        except Exception as error:
            logger.exception("the stream's thread broke")
            reason = errors.ErrorFacts(reason="WORKER_BROKE")
            failure = errors.Internal(f"the stream's thread broke: {error}", reason)
        finally:
            self._ended(failure)

    def _may_renew(self, error: JoblineError | None) -> bool:
        """Returns whether a stream was refused for its token, and the next may have another."""
        is_expired = error is not None and error.reason == TOKEN_EXPIRED and not self._opened
        return is_expired and self._address.identity.is_renewable

    def _pause(self, error: JoblineError | None, tries: int, lived: float) -> None:
        """Waits before the next stream, as the server or the number of tries demands."""
        if self._stopping.is_set() or self._session.is_over:
            return
        pause = RECONNECT.after(max(tries, 1), random.random)
        if self._goaway is not None:
            asked = self._goaway.retry_delay * (0.5 + random.random())  # noqa: S311  # spreads load
            # A server that sends each stream away as it comes is not to be asked without a pause.
            pause = asked if lived >= STEADY_SECONDS else max(asked, pause)
        elif error is not None:
            pause = as_asked(error.retry_after, pause)
            self._log.broke(error, pause, was_open=self._opened)
        self._stopping.wait(pause)

    def _one_call(self) -> JoblineError | None:
        """Opens a stream and reads it to its end; returns the error that ended it, if any."""
        identity = self._address.identity
        try:
            metadata = identity.metadata()
        except JoblineError as error:
            return error
        channel = open_channel(self._address.target, identity.credentials, own_connection=True)
        writer = Writer(self._session, self._session.connect())
        try:
            call = JobServiceStub(channel).Stream(writer, metadata=metadata)
            with self._lock:
                self._call = call
            self._read(call)
        except grpc.RpcError as error:
            if writer.failure is not None:
                raise writer.failure from None
            return error_from_rpc(error)
        except errors.Internal as error:
            return error
        finally:
            writer.close()
            self.hang_up()
            with self._lock:
                self._call = None
            self._session.disconnect()
            if self._opened:
                self._log.ended()
            channel.close()
        return None

    def _read(self, call: Any) -> None:
        if self._stopping.is_set():
            return
        for frame in call:
            received = self._session.handle_frame(frame)
            if received.opened:
                self._opened = True
                self._log.opened(received)
            self._take(received)
            if received.goaway is not None:
                self._goaway = received.goaway
                self._leave_at = time.monotonic() + received.goaway.patience(time.time())
                logger.info("the server asks to move: %s", received.goaway.reason)
            if self._goaway is not None and self._may_move(self._goaway):
                return

    def _may_move(self, goaway: Goaway) -> bool:
        """Returns whether to leave before the server ends the stream. A worker that stays (no
        delay) resumes the session at once, leases and all; one that leaves waits for its confirms
        first.
        """
        return (
            goaway.retry_delay == 0
            or self._session.is_confirmed
            or time.monotonic() >= self._leave_at
        )
