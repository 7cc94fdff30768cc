"""What both kinds of runners share: who is running, and what a batch handler says."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobline._context import BatchItem, CancelReason, Context
from jobline._leased import LeasedJob
from jobline._outcomes import Outcome
from jobline._requests import fail_item
from jobline._worker.desk import Desk
from jobline._worker.middleware import Middleware
from jobline._worker.routes import Route
from jobline._worker.settling import settle_error, settle_value

logger = logging.getLogger("jobline.worker")

Work = tuple[Route, LeasedJob | list[LeasedJob]]
"""One call of a handler: a job, or the jobs of a batch."""


class Forgotten(Exception):
    """A batch handler said nothing about this job; it is failed, never assumed done."""


@dataclass(slots=True, eq=False)
class Shop:
    """What every runner of a worker needs.

    `running` has the contexts of what has started, by (id, delivery): a job that was lost may be
    back here while its old handler still runs. `told` says that some handler was told to stop, and
    may not have heeded it yet.
    """

    desk: Desk
    middleware: Sequence[Middleware] = ()
    state: Any = None
    running: dict[tuple[int, int], Context] = field(default_factory=dict)
    told: bool = False

    def start(self, job: LeasedJob) -> Context | None:
        """A job starts; None if its lease was lost or settled while it waited."""
        context = Context(job, self.desk, self.state)
        self.running[job.id, job.delivery] = context
        if self.desk.holds(job):
            return context
        self.end(context)
        return None

    def end(self, context: Context) -> None:
        """A job has ended, and its outcome is at the desk; or nobody waits for it any more."""
        job = context.job
        self.running.pop((job.id, job.delivery), None)

    def start_batch(self, route: Route, jobs: list[LeasedJob]) -> list[BatchItem[Any]]:
        """A batch starts: the items that are still ours and whose payloads can be read."""
        items = []
        for job in jobs:
            context = self.start(job)
            if context is None:
                continue
            try:
                items.append(BatchItem(route.decode(job), context))
            except Exception as error:  # noqa: BLE001  # a user's type may raise anything
                self.settle_error(context, error)
                self.end(context)
        return items

    def settle_batch(self, items: Sequence[BatchItem[Any]], said: Any) -> None:
        """What a batch handler returned: a sequence in order, or a mapping by id."""
        answers, why = _answers(items, said)
        for item in items:
            if item.id in answers:
                self.settle(item.context, answers[item.id])
            else:
                self.settle_error(item.context, Forgotten(why))

    def settle(self, context: Context, value: Any) -> None:
        """One value, outcome or exception becomes a job's end."""
        if isinstance(value, BaseException) and not isinstance(value, Outcome):
            self.settle_error(context, value)
            return
        try:
            settle_value(self.desk, context, value)
        except Exception as error:  # noqa: BLE001  # then it is a failure, which can be told
            self.settle_error(context, error)

    def settle_error(self, context: Context, error: BaseException) -> None:
        """One error becomes a job's end."""
        try:
            settle_error(self.desk, context, error)
        except Exception:
            logger.exception("the error of job %d cannot be told: it fails without", context.id)
            self.desk.settle(fail_item(context.job, type(error).__name__))

    def stop(self, leases: Iterable[tuple[int, int]], reason: CancelReason) -> None:
        """The handlers of these jobs, where they run, should stop."""
        for lease in leases:
            context = self.running.get(lease)
            if context is not None:
                context.cancel(reason)

    def set_deadline(self, deadline: datetime) -> None:
        """Handlers that run have until then; after that they are told to stop."""
        for context in list(self.running.values()):
            context.deadline = deadline


def _answers(items: Sequence[BatchItem[Any]], said: Any) -> tuple[Mapping[int, Any], str]:
    """What was said of each job, by id; and why nothing was of those that are missing."""
    if isinstance(said, Mapping):
        return said, "the batch handler returned nothing for this job"
    if not isinstance(said, Sequence) or isinstance(said, (str, bytes)):
        return {}, f"the batch handler returned {type(said).__name__}, no sequence and no mapping"
    if len(said) != len(items):  # whose they are cannot be told: an ack might be another job's
        return {}, f"the batch handler returned {len(said)} answers for {len(items)} jobs"
    return {item.id: answer for item, answer in zip(items, said, strict=True)}, ""
