"""An entity for tests, which notes what becomes of it."""

from __future__ import annotations

from typing import Any

from jobline import Entity, IdleReason, entity_method

LOG: list[tuple[str, str]] = []


class Counter(Entity, kind="counter"):
    """Notes what becomes of it."""

    fails = False

    async def on_activate(self) -> None:
        LOG.append(("activate", self.key))
        self.count = 0
        if self.fails:
            raise ValueError("no such counter")

    async def on_idle(self, reason: IdleReason) -> None:
        LOG.append((reason.value, self.key))

    @entity_method(max_attempts=5)
    async def add(self, number: int) -> int:
        """Adds."""
        self.count += number
        return self.count

    @entity_method
    async def read(self) -> int:
        return self.count

    @entity_method
    async def wait(self, gate: Any) -> int:
        self.count += 1
        await gate.wait()
        return self.count

    @entity_method
    async def say(self, outcome: Any) -> Any:
        raise outcome

    @entity_method
    async def give(self, outcome: Any) -> Any:
        return outcome
