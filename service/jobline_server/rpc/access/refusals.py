"""Refusals of callers: their statuses, how many there were, and lines in the log.

Anybody can be refused as often as they like: the log has so many lines a second, and says how many
it left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import grpc

from jobline_server.auth.grants import Caller
from jobline_server.auth.refused import NotAuthenticated, Reason
from jobline_server.rpc.access.asking import Denied
from jobline_server.rpc.errors import Status, make_status
from jobline_server.telemetry.few_lines import FewLines
from jobline_server.telemetry.log import logger

LOG = logger("access")


class Refusals:
    """Counts and logs. `clock` returns seconds and never goes back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.counts: Counter[str] = Counter()
        self._lines = FewLines(clock)

    def status_of(
        self, path: str, refused: NotAuthenticated | Denied, caller: Caller | None, peer: str
    ) -> Status:
        """Returns the status of a refusal, which it counts and logs."""
        principal = "" if caller is None else caller.principal
        if isinstance(refused, Denied):
            self._note(Reason.NOT_ALLOWED, path, principal, peer, refused.verb, refused.queue)
            return refused.status
        self._note(refused.reason, path, principal, peer)
        return not_authenticated(refused)

    def _note(
        self, reason: Reason, path: str, principal: str, peer: str, verb: str = "", queue: str = ""
    ) -> None:
        self.counts[reason] += 1
        left_out = self._lines.next()
        if left_out is None:
            return
        LOG.warning(
            "refused",
            reason=reason.value,
            method=path,
            principal=principal,
            peer=peer,
            verb=verb,
            queue=queue,
            left_out=left_out,
        )


def not_authenticated(refused: NotAuthenticated) -> Status:
    """Returns the status of a caller who is not known."""
    is_late = refused.reason is Reason.AUTH_UNAVAILABLE
    code = grpc.StatusCode.UNAVAILABLE if is_late else grpc.StatusCode.UNAUTHENTICATED
    return make_status(code, refused.reason, refused.message)
