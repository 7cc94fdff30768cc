"""The hosts that webhooks lead to: how many deliveries each has under way, and a breaker for each.

A host that fails again and again is left alone for a time, so that it is not asked for each of ten
thousand deliveries; then one delivery tries whether it is back. This is kept in memory alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.limits import MINUTE_MS, SECOND_MS

# Deliveries that one host has under way.
SENDING_MAX = 4
# Failures in a row that open the breaker, and for how long: twice as long each time.
FAILURES_MAX = 5
OPEN_MS = 30 * SECOND_MS
OPEN_MS_MAX = 30 * MINUTE_MS
# Hosts that are remembered without a delivery under way.
HOSTS_MAX = 1_000
# How long a delivery waits for others of its host.
BUSY_MS = 200


@dataclass(slots=True)
class _Host:
    sending: int = 0
    failures: int = 0
    open_until_ms: int = 0


class Hosts:
    """All hosts, by name and port."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}

    def begin(self, name: str, now_ms: int) -> int:
        """Counts a delivery to a host that begins; returns 0, or when to ask again."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host()
            self._forget_some()
        # Longer than a breaker is ever open: the clock was set back since.
        if now_ms < host.open_until_ms <= now_ms + OPEN_MS_MAX:
            return host.open_until_ms
        # A breaker that was open lets one delivery try.
        most = 1 if host.failures >= FAILURES_MAX else SENDING_MAX
        if host.sending >= most:
            return now_ms + BUSY_MS
        host.sending += 1
        return 0

    def end(self, name: str, now_ms: int, *, is_down: bool) -> None:
        """Counts the end of a delivery, and whether the host seemed to be down."""
        host = self._hosts[name]
        host.sending -= 1
        if not is_down:
            host.failures = host.open_until_ms = 0
            return
        host.failures += 1
        if host.failures >= FAILURES_MAX:
            doublings = min(host.failures - FAILURES_MAX, 10)
            host.open_until_ms = now_ms + min(OPEN_MS << doublings, OPEN_MS_MAX)

    def _forget_some(self) -> None:
        """Forgets the host that is known for longest, if there are too many."""
        if len(self._hosts) > HOSTS_MAX:
            for name, host in self._hosts.items():
                if not host.sending:
                    del self._hosts[name]
                    return
