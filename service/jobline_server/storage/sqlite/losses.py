"""Losses that a start finds: refused, or accepted by the operator and reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jobline_server.storage.store import StoreRefused

WAY_OUT = "to go on without what is lost, start once with --accept-loss"


def _nobody(what: str) -> None:
    """Reports nothing."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Whether losses are accepted. `report` is called with each, on the database's thread."""

    accepted: bool = False
    report: Callable[[str], None] = _nobody

    def meet(self, what: str) -> None:
        """Raises StoreRefused, or reports the loss if it was accepted."""
        if not self.accepted:
            raise StoreRefused(f"{what}; {WAY_OUT}")
        self.report(what)
