"""`Fence`: a handler's effects in the user's database, once, and only by the newest delivery.

Two workers may run the same job: one that lost its lease and does not know, and the one that has
it now. And a worker may die between its commit and its ack. So each transaction of a handler first
passes a row of its job, which it locks until it ends: an older delivery is refused there, and a
step that was committed is not taken again.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from jobline._arguments import refuse, span_given
from jobline._context import BatchItem, Context
from jobline._leased import LeasedJob
from jobline._times import Seconds
from jobline.errors import LeaseLost
from jobline.outbox._tables import FENCE, definition, supported, table_given
from jobline.outbox._transactions import transaction_of

STEP_BYTES_MAX = 200


class Fenced(LeaseLost):
    """A newer delivery of the job has passed the fence: this one must not write any more."""


class Fence:
    """A table of jobs whose effects were committed: `table`, default "jobline_fence", perhaps with
    its schema. `tx` is what `Outbox` takes. It has no state, and serves all threads.
    """

    def __init__(self, table: str = "jobline_fence") -> None:
        self.table = table_given(table)

    def ddl(self, dialect: Literal["sqlite", "postgresql"]) -> str:
        """Returns the statement that creates the table, for migrations. Raises InvalidArgument for
        another database.
        """
        return definition(FENCE, self.table, dialect)

    def create(self, tx: Any) -> None:
        """Creates the table, unless it exists."""
        transaction = transaction_of(tx)
        transaction.execute(definition(FENCE, self.table, transaction.dialect))

    def __call__(
        self, tx: Any, job: Context | LeasedJob | BatchItem[Any], step: str = "effect"
    ) -> bool:
        """Passes the fence in a transaction, before its other writes; returns whether the step is
        to be taken: False if an earlier delivery has committed it.

        `step`: which transaction of the handler it is, if there are several; 1 … 200 bytes. Waits
        for another transaction that has passed the fence for this job and is still open. Raises
        Fenced if a newer delivery has passed: roll back; and InvalidArgument for a connection in
        which no transaction is open and each statement commits by itself.
        """
        if not step or len(step.encode()) > STEP_BYTES_MAX:
            refuse("step", f"must have 1 to {STEP_BYTES_MAX} bytes")
        transaction = transaction_of(tx)
        supported(transaction.dialect)
        transaction.refuse_autocommit("a fence")
        leased = _leased(job)
        now_ms = time.time_ns() // 1_000_000
        key = _key(leased)
        # `<`, not `<=`, would refuse the second transaction of one delivery.
        passed = transaction.execute(
            f"INSERT INTO {self.table} (job, step, delivery, passed_at_ms)"
            " VALUES (?, '', ?, ?) ON CONFLICT (job, step) DO UPDATE"
            " SET delivery = excluded.delivery, passed_at_ms = excluded.passed_at_ms"
            f" WHERE {self.table.rpartition('.')[2]}.delivery <= excluded.delivery",
            *(key, leased.delivery, now_ms),
        )
        if not passed:
            raise Fenced(
                f"delivery {leased.delivery} of job {leased.id} is not the newest any more"
            )
        taken = transaction.execute(
            f"INSERT INTO {self.table} (job, step, delivery, passed_at_ms)"
            " VALUES (?, ?, ?, ?) ON CONFLICT (job, step) DO NOTHING",
            *(key, step, leased.delivery, now_ms),
        )
        return taken == 1

    def clean(self, tx: Any, older_than: Seconds = "30d") -> int:
        """Deletes the rows of jobs that passed last before so long (default 30 days); returns how
        many there were. A job of which a delivery may still come must not be among them.
        """
        before = time.time_ns() // 1_000_000 - int(span_given("older_than", older_than) * 1_000)
        return transaction_of(tx).execute(
            f"DELETE FROM {self.table} WHERE job IN"
            f" (SELECT job FROM {self.table} WHERE step = '' AND passed_at_ms < ?)",
            before,
        )


fence = Fence()
"""The fence of the table `jobline_fence`: `if fence(tx, context): …`."""


def _leased(job: Context | LeasedJob | BatchItem[Any]) -> LeasedJob:
    if isinstance(job, BatchItem):
        return job.context.job
    if isinstance(job, Context):
        return job.job
    if not isinstance(job, LeasedJob):
        refuse("job", f"must be the context of a handler, or a leased job, not {job!r}")
    return job


def _key(job: LeasedJob) -> str:
    """Returns what names a job: its id, and when it was pushed, as ids begin anew with a new data
    directory.
    """
    pushed_at = job.pushed_at
    at_ms = 0 if pushed_at is None else round(pushed_at.timestamp() * 1_000)
    return f"{job.id}@{at_ms}"
