"""Checks payloads of pushes and updates against the schemas that workers announce, for queues that
ask for it.

A payload fits if it fits one of the schemas that connected workers announce for the job's name:
while a new version is rolled out, there are two. It is not checked where there is nothing to check
against: no worker is connected, one of them announces no schema, or one that cannot be used.

Schemas come from workers. They are compiled once (`compiled_schemas`), refer to nothing outside
themselves, and match patterns in linear time. Their width (`schema_width`) and the size of payloads
are limited, so that a check takes some milliseconds, and less than a tenth of a second whatever it
is.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import NamedTuple

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.calls import find_call
from jobline_server.engine.decide.known_keys import job_keys_of
from jobline_server.engine.keys import JOB_KEY, REQUEST_ID, hash_of
from jobline_server.engine.push_fields import payload_field
from jobline_server.engine.queue import Queue
from jobline_server.runtime.calls.compiled_schemas import WIDTH_MAX, Schema
from jobline_server.runtime.calls.handlers import Handlers
from jobline_server.runtime.core import Core

# A larger payload is refused in a queue that checks: to parse this much takes two milliseconds, and
# the loop stands still meanwhile.
CHECKED_PAYLOAD_BYTES_MAX = 256 << 10
# The width of all schemas of a name together, times the bytes of a payload: each takes about 10 ns.
CHECKED_WORK_MAX = 8 << 20
# Payloads are checked in steps of about this long.
STEP_SECONDS = 0.005
# What the schemas of a name may take together when they are compiled, of a typical one of 2 KiB
# more than a hundred. Larger ones cannot be used: to compile them takes too long.
NAME_BYTES_MAX = 32 << 20
# Of the place in a schema, for messages.
PLACE_CHARACTERS_MAX = 200


class Candidate(NamedTuple):
    """A job to check: where it is in the request, its name, payload and idempotency key."""

    field: str
    name: str
    payload: bytes
    job_key: str


class PayloadChecks:
    """Refuses pushes of payloads that do not fit."""

    def __init__(self, core: Core, handlers: Handlers) -> None:
        self._core = core
        self._handlers = handlers

    def may_refuse(self, queue: str) -> bool:
        """Returns whether there is something to check payloads of a queue against."""
        return queue in self._handlers and checks(self._core.slots.find_queue(queue))

    async def check(self, command: Push) -> None:
        """Raises `Refused` with PAYLOAD_MISFIT or TOO_LARGE. A push that came before is not
        refused, nor a job whose key is known: what was stored was checked then.
        """
        began = time.perf_counter()
        names: set[str] = set()
        for job in _candidates(command):
            if job.name not in names:
                names.add(job.name)
                await self._compile(command.queue, job.name)
            why = self._why_not(command.queue, job)
            if why is not None and not self._came_before(command, job):
                raise why
            if time.perf_counter() - began > STEP_SECONDS:
                await asyncio.sleep(0)
                began = time.perf_counter()

    def check_update(self, queue: Queue, name: str, payload: bytes) -> None:
        """Raises `Refused`, as for a push, if a job of this name cannot have this payload."""
        if checks(queue):
            why = self._why_not(queue.name, Candidate("payload", name, payload, ""))
            if why is not None:
                raise why

    async def _compile(self, queue: str, name: str) -> None:
        """Compiles the schemas of a name, one in an iteration of the loop."""
        compiled, held_bytes = self._handlers.schemas.compiled, 0
        for text in self._texts_of(queue, name):
            is_new = text not in compiled
            held_bytes += compiled.find(text).held_bytes
            if held_bytes > NAME_BYTES_MAX:
                break
            if is_new:
                await asyncio.sleep(0)

    def _texts_of(self, queue: str, name: str) -> list[str]:
        """Returns the schemas of a name; none if there are too many."""
        variants = self._handlers.find(queue, name)
        if len(variants) > WIDTH_MAX:
            return []
        return list(dict.fromkeys(one.payload_schema for one in variants))

    def _schemas_of(self, queue: str, name: str) -> tuple[list[Schema], int]:
        """Returns the schemas of a name and their width together; none if they cannot be used."""
        schemas: list[Schema] = []
        width = held_bytes = 0
        for text in self._texts_of(queue, name):
            schema = self._handlers.schemas.compiled.find(text)
            width += schema.width
            held_bytes += schema.held_bytes
            if width > WIDTH_MAX or held_bytes > NAME_BYTES_MAX:
                return [], 0
            schemas.append(schema)
        return schemas, width

    def _why_not(self, queue: str, job: Candidate) -> Refused | None:
        schemas, width = self._schemas_of(queue, job.name)
        if not schemas:
            return None
        bytes_max = min(CHECKED_PAYLOAD_BYTES_MAX, CHECKED_WORK_MAX // width)
        if len(job.payload) > bytes_max:
            message = f"must be at most {bytes_max} bytes in a queue that checks"
            return Refused(RefusalKind.TOO_LARGE, message, field=job.field)
        try:
            # No payload is what clients send for null.
            value = json.loads(job.payload) if job.payload else None
        except (ValueError, RecursionError):
            return _misfit(job, "is not JSON, which the handlers of this name take")
        place = ""
        for schema in schemas:
            misfit = schema.first_misfit(value)
            if misfit is None:
                return None
            place = place or misfit
        why = f"does not fit the schema of its handlers at /{place}"
        return _misfit(job, why[:PLACE_CHARACTERS_MAX])

    def _came_before(self, command: Push, job: Candidate) -> bool:
        shard = self._core.slots.of_queue(command.queue).shard
        aged_ms = shard.age.at(self._core.now())
        if command.request_id:
            request = hash_of(REQUEST_ID, command.queue, command.request_id)
            if shard.requests.find(request, aged_ms) is not None:
                return True
        elif any(find_call(shard, aged_ms, call) is not None for call in command.calls):
            return True
        if not job.job_key:
            return False
        key = hash_of(JOB_KEY, command.queue, job.job_key.encode())
        return shard.keys.find(key, aged_ms) is not None


def checks(queue: Queue | None) -> bool:
    """Returns whether pushes to a queue are checked."""
    return queue is not None and queue.settings.check_payloads


def _candidates(command: Push) -> Iterator[Candidate]:
    """Yields the jobs of a push: those with options of their own first."""
    rows, payloads = command.rows, command.payloads
    keys = rows.job_keys or [""] * len(rows)
    for index, (payload, options, key) in enumerate(
        zip(rows.payloads, rows.options, keys, strict=True)
    ):
        yield Candidate(payload_field(command, index), options.name, payload, key)
    name, plain_keys = command.options.name, job_keys_of(payloads)
    for index, payload in enumerate(payloads):
        key = plain_keys[index] if plain_keys else ""
        yield Candidate(payload_field(command, len(rows) + index), name, payload, key)


def _misfit(job: Candidate, why: str) -> Refused:
    return Refused(RefusalKind.PAYLOAD_MISFIT, why, field=job.field)
