"""Logs what recovery found lost or damaged."""

from __future__ import annotations

from typing import Protocol

from jobline_server.telemetry.log import logger

LOG = logger("app")


class Damage(Protocol):
    """A damaged record: whose it was, and what is wrong with it."""

    @property
    def shard(self) -> int:
        """Returns its shard."""

    @property
    def what(self) -> str:
        """Returns what it holds."""

    @property
    def why(self) -> str:
        """Returns what is wrong."""


def report_loss(what: str) -> None:
    """Logs a loss that was accepted."""
    LOG.error("loss accepted", what=what)


def report_damage(damage: Damage) -> None:
    """Logs a damaged record that was set apart."""
    LOG.error("set apart", shard=damage.shard, what=damage.what, why=damage.why)
