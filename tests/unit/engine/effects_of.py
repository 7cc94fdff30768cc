"""What a shard's facts caused, picked from what gathers in `Shard.applied`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobline_server.engine.effects import Effect, QueueWoken, Revoked, endings_of
from jobline_server.engine.endings import Ending
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard


def take_endings(shard: Shard) -> list[Any]:
    """Returns the endings since the last call, of which a test knows the kinds; other effects
    stay.
    """
    found: list[Ending] = []
    for one in shard.applied:
        endings = list(endings_of(one.effects))
        found += endings
        one.effects[:] = [effect for effect in one.effects if effect not in endings]
    return found


def revoked_in(shard: Shard) -> list[Revoked]:
    """Returns the leases that workers should stop working on; they stay."""
    return [effect for one in shard.applied for effect in one.effects if type(effect) is Revoked]


def forget_revoked(shard: Shard) -> None:
    """Drops those."""
    _keep(shard, lambda effect: type(effect) is not Revoked)


def take_woken(shard: Shard) -> list[Queue]:
    """Returns the queues that may have something to dispatch, each once, since the last call."""
    effects = [effect for one in shard.applied for effect in one.effects]
    _keep(shard, lambda effect: type(effect) is not QueueWoken)
    return list(dict.fromkeys(one.queue for one in effects if isinstance(one, QueueWoken)))


def _keep(shard: Shard, wanted: Callable[[Effect], bool]) -> None:
    for one in shard.applied:
        one.effects[:] = [effect for effect in one.effects if wanted(effect)]
