"""`Relay`: pushes the rows of an outbox, and deletes them.

A row is read, pushed under its id as job key, and deleted, in this order. Whatever dies in between,
the row is there and is pushed again, and the server answers with the job that it has already. Rows
that another relay holds are passed over where the database can (PostgreSQL).
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jobline._arguments import number_given, span_given
from jobline._backoff import RECONNECT
from jobline._blocking.client import Client
from jobline._enums import PushOutcome
from jobline._new_job import NewJob
from jobline._push.answers import refusal_of
from jobline._times import Seconds
from jobline._values import Pushed, short
from jobline.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    JoblineError,
    NotFound,
    PermissionDenied,
    QueueNotCreated,
    ResourceExhausted,
    TooLarge,
)
from jobline.outbox._outbox import Outbox
from jobline.outbox._relayed import Relayed
from jobline.outbox._rows import rows_of
from jobline.outbox._transactions import Transaction, transaction_of

logger = logging.getLogger("jobline.outbox")

# Rows of one call: the server takes 1,000, SQLite before 3.32 fewer parameters.
ROWS_MAX = 900

# Refusals that are about a job, and would come again.
_OF_A_JOB = (InvalidArgument, NotFound, AlreadyExists, FailedPrecondition, TooLarge)
# Refusals that are about a queue: its rows wait, those of others go on.
_OF_A_QUEUE = (ResourceExhausted, QueueNotCreated, PermissionDenied)
# Seconds for which they wait, unless the server says how long; and at most.
HOLD_SECONDS, HOLD_SECONDS_MAX = 1.0, 30.0

_Row = tuple[str, str, NewJob]
"""Id, queue and job."""


class Relay:
    """Pushes the rows of an outbox with a client, as long as `run` runs.

    - `connect`: makes a connection for the relay alone, as often as one breaks:
      `lambda: sqlite3.connect(path)`, `lambda: psycopg.connect(dsn)`, SQLAlchemy's
      `engine.connect`, `lambda: django.db.connection`.
    - `client`: pushes them; the relay does not close it.
    - `poll`: seconds between two looks at an empty table (default 1); `wake` looks at once.
    - `batch`: rows to take at a time, 1 … 900 (default 500).

    Rows of a queue are pushed in the order of their ids, as one process has written them. Several
    relays may share a table; then that order holds within a batch alone. Each row is pushed once
    unless a relay dies between a push and the deletion, and none runs for the next 24 hours, after
    which the server forgets keys.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        client: Client,
        *,
        outbox: Outbox | None = None,
        poll: Seconds = 1,
        batch: int = 500,
    ) -> None:
        self._connect = connect
        self._client = client
        self._table = (outbox or Outbox()).table
        self._poll = span_given("poll", poll, minimum=0.001)
        self._batch = number_given("batch", batch, minimum=1, maximum=ROWS_MAX)
        self._stopping = threading.Event()
        self._wakeup = threading.Event()
        self._held: dict[str, float] = {}
        # Whether the last look found a queue full, whose rows may have taken the place of others.
        self._is_held_up = False
        self._tx: Transaction | None = None
        self._connection: Any = None

    # ------------------------------------------------------------------ running

    def run(self) -> None:
        """Pushes rows until `stop`. Blocking; a database or a server that is away is waited for,
        with a WARNING under `jobline.outbox`.
        """
        tries = 0
        while not self._stopping.is_set():
            self._wakeup.clear()
            try:
                done = self.run_once()
            except Exception as error:  # noqa: BLE001  # a driver raises what it likes
                tries += 1
                pause = RECONNECT.after(tries, random.random)
                logger.warning("the outbox waits: %s; trying again in %.1f s", error, pause)
                self._stopping.wait(pause)
                continue
            tries = 0
            if not done.total and not self._is_held_up:
                self._wakeup.wait(self._poll)
        self.close()

    @contextmanager
    def running(self) -> Iterator[Relay]:
        """Runs it in a thread of its own as long as the `with` block lasts."""
        thread = threading.Thread(target=self.run, name="jobline-outbox", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stop()
            thread.join()

    def stop(self) -> None:
        """Has `run` return soon. Safe on any thread and in a signal handler."""
        self._stopping.set()
        self._wakeup.set()

    def wake(self) -> None:
        """Has `run` look at once, after a commit for example. Safe on any thread."""
        self._wakeup.set()

    def close(self) -> None:
        """Closes the connection; `run` does so at its end."""
        connection, self._connection, self._tx = self._connection, None, None
        if connection is not None:
            connection.close()

    def run_once(self) -> Relayed:
        """Pushes one batch of rows and returns what it did. Raises what the database raises, and
        the JoblineError of a push that may succeed later; the rows stay.
        """
        try:
            tx = self._opened()
            done = self._relay(tx)
            tx.commit()
        except JoblineError:
            self._roll_back()
            raise
        except BaseException:
            self._roll_back()
            self._hang_up()
            raise
        return done

    def _opened(self) -> Transaction:
        if self._tx is None:
            self._connection = self._connect()
            self._tx = transaction_of(self._connection)
        return self._tx

    def _roll_back(self) -> None:
        try:
            if self._tx is not None:
                self._tx.rollback()
        except Exception:  # noqa: BLE001  # it is broken: another one is made
            self._hang_up()

    def _hang_up(self) -> None:
        try:
            self.close()
        except Exception as error:  # noqa: BLE001  # it is gone either way
            logger.debug("closing the connection failed: %s", error)

    # ------------------------------------------------------------------ one batch

    def _relay(self, tx: Transaction) -> Relayed:
        done = Relayed()
        self._is_held_up = False
        by_queue: dict[str, list[_Row]] = {}
        for id_, queue, job in rows_of(tx, self._table, self._held_queues(), self._batch):
            if isinstance(job, JoblineError):
                done = done + self._fail(tx, id_, queue, job)
            else:
                by_queue.setdefault(queue, []).append((id_, queue, job))
        for queue, of_queue in by_queue.items():
            try:
                done = done + self._push(tx, queue, of_queue)
            except _OF_A_QUEUE as error:
                self._hold(queue, error)
            except JoblineError:
                # What other queues have taken is settled before it is raised.
                tx.commit()
                raise
        return done

    def _hold(self, queue: str, error: JoblineError) -> None:
        """Passes over the rows of a queue for a time."""
        pause = min(max(error.retry_after or 0.0, HOLD_SECONDS), HOLD_SECONDS_MAX)
        self._held[queue] = time.monotonic() + pause
        self._is_held_up = True
        logger.warning("jobs of an outbox wait for queue %s, %.1f s: %s", queue, pause, error)

    def _held_queues(self) -> list[str]:
        now = time.monotonic()
        self._held = {queue: until for queue, until in self._held.items() if until > now}
        return list(self._held)

    def _push(self, tx: Transaction, queue: str, rows: Sequence[_Row]) -> Relayed:
        """Pushes rows of one queue. If the server refuses one for good, they go one by one."""
        try:
            pushed = self._client.push_many(queue, [job for _, _, job in rows], atomic=False)
        except _OF_A_JOB as error:
            if isinstance(error, QueueNotCreated):
                raise
            if len(rows) == 1:
                return self._fail(tx, rows[0][0], queue, error)
            done = Relayed()
            for row in rows:
                done = done + self._push(tx, queue, [row])
            return done
        return self._settle(tx, rows, pushed)

    def _settle(self, tx: Transaction, rows: Sequence[_Row], pushed: Sequence[Pushed]) -> Relayed:
        done = Relayed()
        stored, refused = [], []
        for row, one in zip(rows, pushed, strict=True):
            if one.outcome is PushOutcome.REFUSED:
                refused.append((row, one.reason))
            else:
                stored.append(row[0])
                is_repeated = one.outcome is PushOutcome.DUPLICATE
                done = done + Relayed(pushed=1, repeated=int(is_repeated))
        self._delete(tx, stored)
        for row, reason in refused:
            done = done + self._settle_refused(tx, row, reason)
        return done

    def _settle_refused(self, tx: Transaction, row: _Row, reason: str) -> Relayed:
        """Settles a row whose job key is known with another payload, or whose unique key is held.

        With a codec the first is the row itself, pushed before a relay died, and sealed with
        another key since: nobody else has its id as a key.
        """
        id_, queue, job = row
        codec = self._client._connection.codec  # noqa: SLF001  # of the same package
        if codec is not None and reason == "IDEMPOTENCY_MISMATCH":
            self._delete(tx, [id_])
            return Relayed(pushed=1, repeated=1)
        return self._fail(tx, id_, queue, refusal_of(queue, reason, id_, job.unique_key))

    def _delete(self, tx: Transaction, ids: Sequence[str]) -> None:
        if ids:
            marks = ", ".join("?" * len(ids))
            tx.execute(f"DELETE FROM {self._table} WHERE id IN ({marks})", *ids)

    def _fail(self, tx: Transaction, id_: str, queue: str, error: JoblineError) -> Relayed:
        logger.error("the job %s of an outbox, for queue %s, is refused: %s", id_, queue, error)
        tx.execute(
            f"UPDATE {self._table} SET error = ? WHERE id = ?",
            short(f"{type(error).__name__}: {error}"),
            id_,
        )
        return Relayed(failed=1)
