"""The fence: once, and only for the newest delivery of a job."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from jobline import InvalidArgument, LeasedJob, LeaseLost
from jobline._times import to_timestamp
from jobline.outbox import Fence, Fenced, fence
from jobline.testing import make_context
from jobline.v1 import job_pb2

PUSHED_AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def leased(delivery: int, *, id_: int = 7, pushed_at: datetime = PUSHED_AT) -> LeasedJob:
    at = to_timestamp(pushed_at)
    return LeasedJob(id_, delivery, "q", job_pb2.JobOptions(), b"", pushed_at=at)


def passes(database, job, *steps):
    with database.transaction() as tx:
        return [fence(tx, job, *([step] if step else [])) for step in steps or ("",)]


def test_a_step_is_taken_once_by_whichever_delivery_commits_it(database):
    """And again if the transaction was rolled back."""
    connection = database.connect()
    assert fence(connection, leased(1)) is True
    connection.rollback()
    connection.close()
    assert passes(database, leased(1)) == [True]
    assert passes(database, leased(1)) == [False]
    assert passes(database, leased(2)) == [False]
    assert passes(database, leased(2), "charge", "ship", "charge") == [True, True, False]
    assert passes(database, leased(3, id_=8)) == [True]


def test_an_older_delivery_is_refused(database):
    """Whatever step it wants to take; what it has written in the transaction goes with it."""
    assert passes(database, leased(2), "charge") == [True]
    with pytest.raises(Fenced, match="delivery 1 of job 7 is not the newest") as caught:
        passes(database, leased(1), "ship")
    assert isinstance(caught.value, LeaseLost)
    assert passes(database, leased(2), "ship") == [True]


def test_a_job_of_another_server_with_the_same_id_is_another_job(database):
    """As one of a new data directory is, whose ids begin anew."""
    assert passes(database, leased(2)) == [True]
    assert passes(database, leased(1, pushed_at=PUSHED_AT + timedelta(milliseconds=1))) == [True]


def test_two_deliveries_at_the_same_time_wait_for_each_other(database):
    """The second sees what the first has committed."""
    first, second = database.connect(), database.connect()
    found = []
    assert fence(first, leased(1)) is True

    def later():
        found.append(fence(second, leased(2)))
        second.commit()

    thread = threading.Thread(target=later)
    thread.start()
    thread.join(0.2)
    assert found == []  # it waits
    first.commit()
    thread.join(30)
    assert found == [False]
    with pytest.raises(Fenced):
        fence(first, leased(1), "next")
    first.close()
    second.close()


def test_a_fence_takes_contexts_and_refuses_what_is_no_job(database):
    """And steps without a name."""
    with database.transaction() as tx:
        assert fence(tx, make_context(id=3)) is True
        with pytest.raises(InvalidArgument, match="the context of a handler"):
            fence(tx, 3)  # type: ignore[arg-type]  # the mistake
        for step in ("", "é" * 101):
            with pytest.raises(InvalidArgument, match="1 to 200 bytes"):
                fence(tx, leased(1), step)


def test_a_fence_outside_of_a_transaction_is_refused(database):
    """It would protect nothing."""
    connection = database.connect()
    if database.kind == "sqlite":
        connection.isolation_level = None
    else:
        connection.autocommit = True
    with pytest.raises(InvalidArgument, match="belongs into a transaction"):
        fence(connection, leased(1))
    connection.close()


def test_old_rows_are_cleaned_job_by_job(database):
    """All steps of a job, or none."""
    passes(database, leased(1), "a", "b")
    with database.transaction() as tx:
        assert fence.clean(tx) == 0
        assert fence.clean(tx, older_than=0) in {0, 3}
    other = Fence("other_fence")
    with database.transaction() as tx:
        other.create(tx)
        other.create(tx)
        assert other(tx, leased(1)) is True
