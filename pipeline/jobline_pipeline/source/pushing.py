"""Pushes lots: some calls at once, each repeated until the server took it.

A server that is full says so, and nothing of the call is stored: the task waits as long as the
server asks. A call whose outcome is unknown is repeated with its request id, by which the server
stores it once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from jobline import AsyncClient, PushOutcome
from jobline.errors import IdempotencyMismatch, JoblineError, OutcomeUnknown, TooLarge
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source.lots import JSON, Lot, Rows
from jobline_pipeline.source.options import Server, Writing

# The pause after a refusal that names none: it doubles up to the second.
PAUSE_SECONDS = 0.05
PAUSE_SECONDS_MAX = 2.0
# A request id is known for 10 minutes; a call is not repeated near the end of that.
REPEAT_SECONDS_MAX = 540.0


class Pusher:
    """Pushes the lots of one task. `created`, `repeated`: jobs that are new, and those that a key
    showed to be there.
    """

    def __init__(self, client: AsyncClient, server: Server, how: Writing, rows: Rows) -> None:
        self._client = client
        self._server = server
        self._patience = how.patience
        self._options: dict[str, Any] = dict(how.constants)
        if rows.payload is None:
            self._options.setdefault("content_type", JSON)
        self._calls = how.calls
        self.created = 0
        self.repeated = 0

    async def push_all(self, lots: Iterable[Lot], **more: Any) -> None:
        """Pushes lots, up to `calls` at once. `more`: options of all jobs. Raises PipelineError."""
        flying: set[asyncio.Task[None]] = set()
        try:
            for lot in lots:
                flying.add(asyncio.create_task(self._push(lot, {**self._options, **more})))
                # The next lot is made while these fly.
                await asyncio.sleep(0)
                while len(flying) >= self._calls:
                    flying = await _one_done(flying)
            while flying:
                flying = await _one_done(flying)
        finally:
            for task in flying:
                task.cancel()

    async def _push(self, lot: Lot, options: dict[str, Any]) -> None:
        until = time.monotonic() + self._patience
        pause, request_id, asked = PAUSE_SECONDS, None, time.monotonic()
        while True:
            try:
                return await self._call(lot, options, request_id)
            except OutcomeUnknown as error:
                problem: JoblineError = error
                if error.request_id is None or time.monotonic() > asked + REPEAT_SECONDS_MAX:
                    raise self._problem(error) from error
                request_id = error.request_id
            except JoblineError as error:
                problem = error
                if not error.retryable or isinstance(error, TooLarge):
                    raise self._problem(error) from error
            wait = problem.retry_after if problem.retry_after is not None else pause
            if time.monotonic() + wait > until:
                raise self._problem(problem) from problem
            await asyncio.sleep(wait)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _call(self, lot: Lot, options: dict[str, Any], request_id: str | None) -> None:
        if lot.jobs:
            pushed = await self._client.push_many(
                lot.queue, lot.jobs, request_id=request_id, **options
            )
            created = sum(each.outcome is PushOutcome.CREATED for each in pushed)
        else:
            columns: dict[str, Any] = {f"{name}s": each for name, each in lot.columns.items()}
            done = await self._client.push_payloads(
                lot.queue, lot.payloads, request_id=request_id, **columns, **options
            )
            created = done.count
        self.created += created
        self.repeated += len(lot) - created

    def _problem(self, error: JoblineError) -> PipelineError:
        if isinstance(error, IdempotencyMismatch):
            return PipelineError(
                f"{error.message}: an earlier job with this key had another payload; nothing of "
                "these rows was stored"
            )
        return PipelineError(f"{self._server.address}: {error.message}")


async def _one_done(flying: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Waits until one of some calls is done, and returns the others. Raises what it raised."""
    done, others = await asyncio.wait(flying, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return others
