"""Entities in the memory of a worker: made for their first job, kept for the next ones, and let go.

An object is kept only while what it holds must be true: after a job that completed, until a lease
says that another worker had a job of the entity since (`continues_group`). After anything else, a
failure, a release, a lost lease, it is dropped and made anew.

All of this runs on the worker's loop. A job never waits for the object of another entity, except
where more objects are being let go than may be at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from jobline._context import Context
from jobline._entity import Entity, EntityMethod, IdleReason, methods_of
from jobline._enums import LeaseReason
from jobline._outcomes import Outcome
from jobline._worker.routes import Route
from jobline.errors import InvalidArgument

logger = logging.getLogger("jobline.worker")

# Seconds that one `on_idle` has, and all of them when the worker stops.
IDLE_SECONDS = 10.0
# Objects whose `on_idle` runs at a time. Beyond it a job that needs a new object waits.
LEAVING_MAX = 64
# Seconds between two looks for idle objects while more are due than may leave at a time.
AGAIN_SECONDS = 0.05


class _Active:
    """An entity in memory: whether a job of it runs, and when the last one began or ended."""

    __slots__ = ("entity", "is_running", "used_at")

    def __init__(self, entity: Entity, used_at: float) -> None:
        self.entity = entity
        self.is_running = True
        self.used_at = used_at


class ActiveEntities:
    """The entities of one class, the least recently used first."""

    def __init__(self, entity: type[Entity], *, max_active: int, idle_after: float) -> None:
        self._class = entity
        self._methods = methods_of(entity)
        self._max_active = max_active
        self._idle_after = idle_after
        self._has_on_idle = entity.on_idle is not Entity.on_idle
        self._active: OrderedDict[str, _Active] = OrderedDict()
        # Those whose `on_idle` runs, and the newest of each key.
        self._leaving: set[asyncio.Task[None]] = set()
        self._leaving_of: dict[str, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._active)

    def routes(self) -> list[Route]:
        """Returns the handlers of the class, one per method."""
        return [
            Route(
                queue=self._class.kind,
                name=method.name,
                function=partial(self.run, method),
                is_async=True,
                wants_context=True,
                payload=method.payload,
                result=method.result,
            )
            for method in self._methods
        ]

    async def run(self, method: EntityMethod[Any, Any], payload: Any, context: Context) -> Any:
        """Runs a job of an entity."""
        active = await self._activated(context)
        is_kept = False
        try:
            value = await method.call(active.entity, payload)
            is_kept = not (context.cancelled or isinstance(value, Outcome))
        finally:
            self._end(context.group, active, is_kept=is_kept)
        return value

    async def close(self) -> None:
        """Lets go of all entities; the worker has stopped."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        end = loop.time() + IDLE_SECONDS
        while self._active and loop.time() < end:
            if len(self._leaving) < LEAVING_MAX:
                key, active = self._active.popitem(last=False)
                self._leave(key, active.entity, IdleReason.STOPPING)
            else:
                await self._wait_leaving(end - loop.time())
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=max(end - loop.time(), 0))
        left = len(self._active) + len(self._leaving)
        if left:
            logger.warning("%d entities of %s were dropped as they are", left, self._class.kind)
        for task in self._leaving:
            task.cancel()
        self._active.clear()

    # Making.

    async def _activated(self, context: Context) -> _Active:
        """Returns the entity of a job: the one in memory if what it holds is true, else a new one,
        once the one before is gone.
        """
        key = context.group
        if not key:
            raise InvalidArgument(f"a job of an entity of {self._class.kind} has its key as group")
        found = self._active.get(key)
        if found is not None and _holds(found, context):
            found.entity.context = context
            found.is_running = True
            self._active.move_to_end(key)
            return found
        self._drop(key, IdleReason.LOST)
        leaving = self._leaving_of.get(key)
        if leaving is not None:
            await asyncio.wait([leaving], timeout=IDLE_SECONDS + 1)
        await self._make_room()
        return await self._make(key, context)

    async def _make(self, key: str, context: Context) -> _Active:
        entity = self._class()
        entity.key, entity.context, entity.state = key, context, context.state
        active = _Active(entity, asyncio.get_running_loop().time())
        self._drop(key, IdleReason.LOST)
        self._active[key] = active
        try:
            await entity.on_activate()
        except BaseException:
            if self._active.get(key) is active:
                del self._active[key]
            raise
        return active

    async def _make_room(self) -> None:
        """Lets go of the least recently used ones until one more may be made."""
        while len(self._active) >= self._max_active:
            # First of all, and again after each wait: others take the places that become free.
            if len(self._leaving) >= LEAVING_MAX and await self._wait_leaving(IDLE_SECONDS + 1):
                continue
            idle = (key for key, active in self._active.items() if not active.is_running)
            key = next(idle, None)
            if key is None:
                break
            self._drop(key, IdleReason.EVICTED)

    # Letting go.

    def _end(self, key: str, active: _Active, *, is_kept: bool) -> None:
        """Keeps an entity whose job has ended, or lets go of it."""
        active.is_running = False
        is_newest = self._active.get(key) is active
        if is_kept and is_newest:
            active.used_at = asyncio.get_running_loop().time()
            self._active.move_to_end(key)
            self._arm(self._idle_after)
            return
        if is_newest:
            del self._active[key]
        self._leave(key, active.entity, IdleReason.LOST)

    def _drop(self, key: str, reason: IdleReason) -> None:
        """Removes an entity; one whose job still runs, as its lease was lost, leaves when that
        ends.
        """
        active = self._active.pop(key, None)
        if active is not None and not active.is_running:
            self._leave(key, active.entity, reason)

    def _leave(self, key: str, entity: Entity, reason: IdleReason) -> None:
        if not self._has_on_idle:
            return
        task = asyncio.get_running_loop().create_task(_let_go(entity, reason))
        self._leaving.add(task)
        self._leaving_of[key] = task
        task.add_done_callback(partial(self._left, key))

    def _left(self, key: str, task: asyncio.Task[None]) -> None:
        self._leaving.discard(task)
        if self._leaving_of.get(key) is task:
            del self._leaving_of[key]

    async def _wait_leaving(self, seconds: float) -> bool:
        """Waits up to this long until one has left; returns whether one has."""
        first = asyncio.FIRST_COMPLETED
        left, _ = await asyncio.wait(self._leaving, timeout=seconds, return_when=first)
        return bool(left)

    def _arm(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        """Lets go of those that were idle for long enough."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for key, active in list(self._oldest()):
            wait = active.used_at + self._idle_after - now
            if wait > 0 or len(self._leaving) >= LEAVING_MAX:
                self._arm(max(wait, AGAIN_SECONDS))
                return
            self._drop(key, IdleReason.IDLE)
        if self._active:
            self._arm(self._idle_after)

    def _oldest(self) -> Iterable[tuple[str, _Active]]:
        """Returns those that do not run, the least recently used first; a slice of many."""
        found: list[tuple[str, _Active]] = []
        for key, active in self._active.items():
            if not active.is_running:
                found.append((key, active))
            if len(found) > LEAVING_MAX:
                break
        return found


@asynccontextmanager
async def let_go_at_end(entities: Iterable[ActiveEntities]) -> AsyncIterator[None]:
    """Lets go of all entities of a worker when its last job has ended."""
    try:
        yield
    finally:
        await asyncio.gather(*(active.close() for active in entities))


def _holds(active: _Active, context: Context) -> bool:
    """Returns whether what an entity in memory holds is true for a job: no other worker has had one
    since, and no attempt at this one.
    """
    is_first = context.reason is LeaseReason.FIRST
    return is_first and context.continues_group and not active.is_running


async def _let_go(entity: Entity, reason: IdleReason) -> None:
    name = f"{type(entity).kind}/{entity.key}"
    try:
        async with asyncio.timeout(IDLE_SECONDS):
            await entity.on_idle(reason)
    except TimeoutError:
        logger.error("on_idle of %s took longer than %g s: it was cancelled", name, IDLE_SECONDS)  # noqa: TRY400
    except Exception:
        logger.exception("on_idle of %s failed (%s)", name, reason.value)
