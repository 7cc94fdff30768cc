"""Reaching a server: the first contact, and what is logged while it does not answer.

Before the first call of a connection a server is asked for a sign of life, by the standard health
check. Where nothing answers nothing was sent, so the refusal is definite, and it comes in seconds.
Later, when the outcome of a push may be unknown, pushes are repeated instead.
"""

from __future__ import annotations

import logging

from jobline.errors import DeadlineExceeded, JoblineError, NotConnected, Unavailable

logger = logging.getLogger("jobline.client")

# Any server of gRPC answers this, if only by saying that it does not know the method.
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
# How long a server that is starting is tried again, and how long one may take to answer.
CONNECT_SECONDS = 2.0
PAUSE_SECONDS = 0.1


class Reaching:
    """One attempt to reach a server, over several tries."""

    def __init__(self, target: str, now: float, patience: float) -> None:
        self._target = target
        self._until = now + patience
        self._why = ""

    def pause_after(self, now: float, error: JoblineError) -> float | None:
        """Returns the seconds until the next try after a failed one; None if a server has replied,
        whatever the reply. Raises NotConnected when there is no time for another try.
        """
        if error.reason or not isinstance(error, (Unavailable, DeadlineExceeded)):
            return None
        # A name may have two addresses, and gRPC reports the failure of one of them: a refused
        # connection at ::1 tells less than a failure at 127.0.0.1.
        why = reason_of(error)
        if not self._why or self._why in _NOBODY_THERE:
            self._why = why
        if isinstance(error, Unavailable) and now + PAUSE_SECONDS <= self._until:
            return PAUSE_SECONDS
        raise NotConnected(f"cannot connect to {self._target}: {self._why}") from None


def reason_of(error: JoblineError) -> str:
    """Returns why a server cannot be reached, in plain words where gRPC's are known."""
    if isinstance(error, DeadlineExceeded):
        return "no answer"
    if error.message.startswith(_CANNOT):
        return error.message.removeprefix(_CANNOT)
    return _in_words(error.message)


def sentence_of(message: str) -> str:
    """Returns gRPC's message about a connection that failed, without the parts of gRPC in which it
    was found. Any other message stays as it is.
    """
    return f"{_CANNOT}{_in_words(message)}" if message.startswith(_OF_GRPC) else message


_OF_GRPC = "failed to connect to all addresses"
_CANNOT = "cannot connect: "


def _in_words(message: str) -> str:
    found = next((words for part, words in _REASONS.items() if part in message.lower()), "")
    return found or message.rpartition("last error: ")[2]


# Parts of gRPC's messages, in small letters.
_REASONS = {
    "connection refused": "connection refused",
    "no such file": "no such file or directory",
    "domain name not found": "no such host",
    "no route to host": "no route to host",
    "network is unreachable": "the network is unreachable",
    "connection reset": "the connection was reset",
    "socket closed": "the connection was closed",
    "wrong_version_number": "the TLS handshake failed; does the server speak TLS?",
    "certificate has expired": "its certificate has expired, or is not valid yet",
    "certificate is not yet valid": "its certificate has expired, or is not valid yet",
    "certificate_verify_failed": "its certificate is not of an authority that is trusted here",
    "hostname verification": "its certificate is for another name",
    "selected alpn property": "it does not speak gRPC; is it the HTTP port?",
    "handshake failed": "the TLS handshake failed",
    "before receiving settings": "something listens there and says nothing",
    "http1.x server": "it does not speak gRPC; is it the HTTP port?",
}
_NOBODY_THERE = {"connection refused", "no route to host", "the network is unreachable"}
_SOMEBODY_THERE = (
    _REASONS["wrong_version_number"],
    _REASONS["certificate has expired"],
    _REASONS["certificate_verify_failed"],
    _REASONS["hostname verification"],
    _REASONS["handshake failed"],
    _REASONS["before receiving settings"],
    _REASONS["http1.x server"],
    "no answer",
)


def is_somebody_there(error: JoblineError) -> bool:
    """Returns whether something else answers in place of a server that was not reached, or the
    server hangs.
    """
    return isinstance(error, NotConnected) and error.message.endswith(_SOMEBODY_THERE)


class Trouble:
    """Logs once that a server does not reply, and once that it does again."""

    def __init__(self, target: str, repeated_for: float) -> None:
        self._target = target
        self._repeated_for = repeated_for
        self._is_on = False

    def began(self, error: JoblineError) -> None:
        """Logs that a push got no reply and is repeated."""
        if not self._is_on:
            self._is_on = True
            logger.warning(
                "no answer from %s, pushes are repeated for up to %g s: %s",
                self._target,
                self._repeated_for,
                reason_of(error),
            )

    def ended(self) -> None:
        """Logs that a push was answered again."""
        if self._is_on:
            self._is_on = False
            logger.info("%s answers again", self._target)
