"""What both kinds of runners share: which jobs run, and what settles them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from jobline._cancel_reason import CancelReason
from jobline._context import BatchItem, Context
from jobline._leased import LeasedJob
from jobline._outcomes import Outcome, WaitFor
from jobline._requests import fail_item
from jobline._times import from_duration
from jobline._worker.flow_calls import FlowCalls
from jobline._worker.middleware import Middleware
from jobline._worker.routes import Route
from jobline._worker.settling import settle_error, settle_value
from jobline._worker.shared_session import SharedSession
from jobline._worker.tallies import Tallies
from jobline.codec import Codec
from jobline.errors import SealError
from jobline.v1 import job_pb2

logger = logging.getLogger("jobline.worker")

Work = tuple[Route, LeasedJob | list[LeasedJob]]
"""One call of a handler: a job, or the jobs of a batch."""


class Forgotten(Exception):
    """A batch handler returned nothing for this job. The job fails; it is never assumed done."""


@dataclass(slots=True, eq=False)
class Execution:
    """What every runner of a worker needs.

    `running` has the contexts of started jobs by (id, delivery): a job whose lease was lost may be
    leased again while its old handler still runs. `has_cancelled`: some handler was asked to stop
    and may still run. `tallies`: where to count how long handlers take, if anybody asks.
    """

    session: SharedSession
    flows: FlowCalls
    middleware: Sequence[Middleware] = ()
    state: Any = None
    running: dict[tuple[int, int], Context] = field(default_factory=dict)
    has_cancelled: bool = False
    tallies: Tallies | None = None
    codec: Codec | None = None
    # The last options that were seen to have no timeout: the jobs of a run share theirs.
    _untimed: job_pb2.JobOptions | None = None

    def __post_init__(self) -> None:
        self.flows.done = self.end

    def start(self, job: LeasedJob) -> Context | None:
        """Starts a job; returns None if its lease was lost or settled while it waited."""
        if self.codec is not None:
            self._open(self.codec, job)
        context = Context(job, self.session, self.state, self.flows)
        if job.options_message is not self._untimed:
            self._note_timeout(context)
        self.running[job.id, job.delivery] = context
        if self.session.begin(job):
            if self.tallies is not None:
                self.tallies.began((job.id, job.delivery))
            return context
        self.end(context)
        return None

    def _open(self, codec: Codec, job: LeasedJob) -> None:
        """Opens a job; one that cannot be opened fails where its payload is read."""
        try:
            codec.open_job(job)
        except SealError as error:
            job.seal = error

    def _note_timeout(self, context: Context) -> None:
        options = context.job.options_message
        if not options.HasField("timeout"):
            self._untimed = options
        elif timeout := from_duration(options.timeout):  # 0: no limit, whatever the queue says
            context.deadline = datetime.now(UTC) + timeout

    def end(self, context: Context) -> None:
        """Ends a job: its outcome was handed over, or its handler was given up. One that waits for
        children ends when they are pushed.
        """
        lease = (context.job.id, context.job.delivery)
        if self.flows.pending and lease in self.flows.pending:
            return
        self.running.pop(lease, None)
        if self.tallies is not None:
            self.tallies.ended(lease, context)
        if self.session.begun:
            self.session.begun.discard(lease)

    def start_batch(self, route: Route, jobs: list[LeasedJob]) -> list[BatchItem[Any]]:
        """Starts a batch; returns the items that are still leased and can be read."""
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

    def settle_batch(self, items: Sequence[BatchItem[Any]], returned: Any) -> None:
        """Settles a batch by what its handler returned: answers in order, or by id."""
        answers, why = _answers(items, returned)
        for item in items:
            if item.id in answers:
                self.settle(item.context, answers[item.id])
            else:
                self.settle_error(item.context, Forgotten(why))

    def settle(self, context: Context, value: Any) -> None:
        """Settles a job by a value, outcome or exception."""
        if isinstance(value, BaseException) and (
            isinstance(value, WaitFor) or not isinstance(value, Outcome)
        ):
            self.settle_error(context, value)
            return
        try:
            settle_value(self.session, context, value)
        except Exception as error:  # noqa: BLE001  # then the job fails
            self.settle_error(context, error)

    def settle_error(self, context: Context, error: BaseException) -> None:
        """Settles a job by an exception."""
        if isinstance(error, WaitFor):
            self.flows.push(context, error)
            return
        try:
            settle_error(self.session, context, error)
        except Exception:
            logger.exception("the error of job %d cannot be told: it fails without", context.id)
            self.session.settle(fail_item(context.job, type(error).__name__))

    def stop(self, leases: Iterable[tuple[int, int]], reason: CancelReason) -> None:
        """Asks the handlers of these jobs to stop, where they run."""
        for lease in leases:
            context = self.running.get(lease)
            if context is not None:
                context.cancel(reason)

    def set_deadline(self, deadline: datetime) -> None:
        """Sets the deadline of all handlers that run; one that is earlier stays."""
        for context in list(self.running.values()):
            context.deadline = min(deadline, context.deadline or deadline)


def _answers(items: Sequence[BatchItem[Any]], returned: Any) -> tuple[Mapping[int, Any], str]:
    """Returns the answers by job id, and the error for jobs without one."""
    if isinstance(returned, Mapping):
        return returned, "the batch handler returned nothing for this job"
    if not isinstance(returned, Sequence) or isinstance(returned, (str, bytes)):
        return (
            {},
            f"the batch handler returned {type(returned).__name__}, no sequence and no mapping",
        )
    if len(returned) != len(items):  # which belongs to which job is unknown
        return {}, f"the batch handler returned {len(returned)} answers for {len(items)} jobs"
    return {item.id: answer for item, answer in zip(items, returned, strict=True)}, ""
