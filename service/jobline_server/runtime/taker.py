"""Takers: what the runtime asks of somebody who wants jobs, a stream or a long poll."""

from __future__ import annotations

from typing import Protocol

from jobline_server.dispatch.turns import Consumer
from jobline_server.engine.commands import Leased
from jobline_server.engine.holder import Holder
from jobline_server.engine.shard import Shard


class Taker(Consumer, Protocol):
    """A consumer that leases can be given to. `lease_ms` 0 leaves each job its own."""

    @property
    def lease_ms(self) -> int:
        """Length of its leases."""

    def holder_on(self, shard: Shard) -> Holder:
        """Who holds its leases on a shard."""

    def take(self, leased: Leased) -> None:
        """Jobs were leased to it."""
