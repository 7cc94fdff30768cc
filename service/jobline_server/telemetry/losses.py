"""Logs what a store lost, where an operator accepted that, and what it sets apart as damaged."""

from __future__ import annotations

from typing import Protocol

from jobline_server.telemetry.log import logger

LOG = logger("app")


class SetApart(Protocol):
    """Something damaged that a shard does not serve."""

    @property
    def shard(self) -> int:
        """Returns the number of the shard."""

    @property
    def what(self) -> str:
        """Returns what it is."""

    @property
    def why(self) -> str:
        """Returns what is wrong with it."""


def report_loss(what: str) -> None:
    """Logs an accepted loss."""
    LOG.error("loss accepted", what=what)


def report_damage(damage: SetApart) -> None:
    """Logs what was set apart."""
    LOG.error("set apart", shard=damage.shard, what=damage.what, why=damage.why)
