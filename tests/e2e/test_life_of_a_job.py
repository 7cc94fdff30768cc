"""What happens to a job from push to end, over a socket, on both transports."""

from __future__ import annotations

import pytest

from jobline import (
    AckLevel,
    AsyncClient,
    AttemptOutcome,
    Backoff,
    BackoffKind,
    EndReason,
    FailAction,
    IdempotencyMismatch,
    JobError,
    JobNotFound,
    JobOptions,
    JobState,
    LeaseReason,
    NewJob,
    PushOutcome,
    QueueFull,
    QueueSettings,
    Retention,
    SettleOutcome,
)
from jobline_server.testing import RunningServer

PLAIN_BACKOFF = Backoff(kind=BackoffKind.FIXED, base=10, jitter=0)


async def test_a_pushed_job_is_pulled_once_and_completes(client: AsyncClient) -> None:
    """Push, pull, ack: then it is COMPLETED, with its result."""
    pushed = await client.push("mail", {"to": "a@b.c"}, name="welcome")
    (leased,) = await client.pull("mail")
    assert (leased.id, leased.attempt, leased.json()) == (pushed.id, 1, {"to": "a@b.c"})
    assert await client.pull("mail") == []
    assert await client.ack(leased, result={"sent": True}) == [SettleOutcome.DONE]
    ended = await client.wait_one(pushed.id)
    assert (ended.state, ended.value()) == (JobState.COMPLETED, {"sent": True})


@pytest.mark.parametrize("level", list(AckLevel)[-3:])
async def test_every_ack_level_says_what_it_reached(client: AsyncClient, level: AckLevel) -> None:
    """The reply never claims more, and the job is handed out all the same."""
    pushed = await client.push("mail", b"x", ack_level=level)
    assert pushed.ack_level == level
    (leased,) = await client.pull("mail", wait=5)
    assert leased.id == pushed.id


async def test_priority_goes_first_then_first_come(client: AsyncClient) -> None:
    """Higher priority first; within one, in the order of the pushes."""
    low = [await client.push("mail", b"low") for _ in range(2)]
    high = await client.push("mail", b"high", options=JobOptions(priority=5))
    pulled = await client.pull("mail", max_jobs=3)
    assert [job.id for job in pulled] == [high.id, low[0].id, low[1].id]


async def test_a_delayed_job_does_not_block_those_behind_it(
    client: AsyncClient, server: RunningServer
) -> None:
    """One delayed job of high priority keeps nobody waiting, and comes when it is due.
    Predecessors: one delayed job of high priority blocked its queue.
    """
    later = await client.push("mail", b"later", options=JobOptions(priority=9), delay=60)
    now = await client.push("mail", b"now")
    assert [job.id for job in await client.pull("mail", max_jobs=2)] == [now.id]
    server.advance(60_000)
    assert [job.id for job in await client.pull("mail", wait=5)] == [later.id]


async def test_a_failed_job_is_retried_after_its_backoff_and_then_dies(
    client: AsyncClient, server: RunningServer
) -> None:
    """Each fail uses an attempt; the last one sends it to the dead letters with its error."""
    options = JobOptions(max_attempts=2, backoff=PLAIN_BACKOFF)
    pushed = await client.push("mail", b"x", options=options)
    (first,) = await client.pull("mail")
    again = await client.fail(first, JobError(type="Smtp", message="no route"))
    assert again.state == JobState.SCHEDULED
    assert await client.pull("mail") == []
    server.advance(10_000)
    (second,) = await client.pull("mail", wait=5)
    assert (second.attempt, second.reason) == (2, LeaseReason.RETRY)
    assert second.delivery > first.delivery
    last = await client.fail(second, JobError(type="Smtp", message="no route"))
    assert last.state == JobState.DEAD
    dead = await client.jobs.get(pushed.id)
    assert dead.reason is EndReason.MAX_ATTEMPTS_EXCEEDED
    assert [attempt.error and attempt.error.type for attempt in dead.history] == ["Smtp", "Smtp"]


async def test_who_waits_for_a_job_that_dies_is_told_at_once(client: AsyncClient) -> None:
    """Not after the timeout."""
    pushed = await client.push("mail", b"x")
    (leased,) = await client.pull("mail")
    await client.fail(leased, "broken", then=FailAction.DEAD)
    ended = await client.wait_one(pushed.id, timeout=30)
    assert (ended.state, ended.reason) == (JobState.DEAD, EndReason.EXPLICIT_FAIL)


async def test_a_lost_lease_goes_to_the_front_and_the_old_one_is_refused(
    client: AsyncClient, server: RunningServer
) -> None:
    """At most one valid lease: the older one's ack changes nothing."""
    pushed = await client.push("mail", b"first")
    await client.push("mail", b"second")
    (lost,) = await client.pull("mail")
    server.advance(32_000)
    (again,) = await client.pull("mail", wait=5)
    assert (again.id, again.reason) == (pushed.id, LeaseReason.STALLED)
    assert await client.ack(lost) == [SettleOutcome.LEASE_LOST]
    assert await client.ack(again) == [SettleOutcome.DONE]
    assert await client.ack(again) == [SettleOutcome.ALREADY_DONE]
    assert await client.ack(lost) == [SettleOutcome.LEASE_LOST]


async def test_a_repeated_ack_of_a_job_that_is_not_kept_finds_nothing(client: AsyncClient) -> None:
    """Trial D5: ALREADY_DONE is what an ended job says of itself, so one that is not kept says
    NOT_FOUND; neither changes anything.
    """
    await client.push(
        "mail", b"x", options=JobOptions(retention=Retention(remove_on_complete=True))
    )
    (leased,) = await client.pull("mail")
    assert await client.ack(leased) == [SettleOutcome.DONE]
    assert await client.ack(leased) == [SettleOutcome.NOT_FOUND]


async def test_more_stalls_than_allowed_are_the_end(
    client: AsyncClient, server: RunningServer
) -> None:
    """A job that kills its workers does not go round for ever."""
    pushed = await client.push("mail", b"x", options=JobOptions(max_stalls=1))
    for _ in range(2):
        assert await client.pull("mail", wait=5)
        server.advance(32_000)
    ended = await client.wait_one(pushed.id)
    assert (ended.state, ended.reason) == (JobState.DEAD, EndReason.STALLED)


async def test_an_extended_lease_lives_and_keeps_what_was_reported(
    client: AsyncClient, server: RunningServer
) -> None:
    """Over half an hour of heartbeats the job stays where it is; its checkpoint is for the next."""
    pushed = await client.push("mail", b"x")
    (leased,) = await client.pull("mail")
    for minute in range(40):
        server.advance(20_000)
        outcome = await client.extend(leased, progress=minute, checkpoint=b"%d" % minute)
        assert outcome == [SettleOutcome.DONE]
    assert (await client.jobs.get(pushed.id)).progress == 39
    await client.fail(leased, "later", retry_after=0)
    (again,) = await client.pull("mail", wait=5)
    assert again.checkpoint == b"39"


async def test_a_released_job_costs_neither_an_attempt_nor_a_stall(client: AsyncClient) -> None:
    """It goes back to the front."""
    pushed = await client.push("mail", b"first")
    await client.push("mail", b"second")
    (leased,) = await client.pull("mail")
    assert await client.release(leased) == [SettleOutcome.DONE]
    (again,) = await client.pull("mail", wait=5)
    assert (again.id, again.attempt, again.reason) == (pushed.id, 1, LeaseReason.RELEASED)
    job = await client.jobs.get(pushed.id)
    assert (job.failed, job.stalls, job.releases) == (0, 0, 1)


async def test_a_cancelled_waiting_job_never_runs(client: AsyncClient) -> None:
    """It ends at once, and whoever waits is told."""
    pushed = await client.push("mail", b"x")
    assert (await client.jobs.cancel(pushed.id)).count == 1
    assert await client.pull("mail") == []
    assert (await client.wait_one(pushed.id)).state == JobState.CANCELLED


async def test_a_cancelled_active_job_ends_when_its_worker_settles_it(
    client: AsyncClient,
) -> None:
    """The ack says CANCELLED, and the result is kept."""
    pushed = await client.push("mail", b"x")
    (leased,) = await client.pull("mail")
    assert (await client.jobs.cancel(pushed.id)).requested == 1
    assert await client.ack(leased, result="done anyway") == [SettleOutcome.CANCELLED]
    ended = await client.wait_one(pushed.id)
    assert ended.state == JobState.CANCELLED
    assert ended.result


async def test_a_job_that_its_worker_cancels_keeps_the_error(client: AsyncClient) -> None:
    """Trial B4: `Fail{then: CANCEL}` keeps the error; GetJob shows it, in the history too."""
    pushed = await client.push("mail", b"x")
    (leased,) = await client.pull("mail")
    await client.fail(leased, JobError(type="Cancel", message="no"), then=FailAction.CANCEL)
    job = await client.jobs.get(pushed.id)
    assert job.state is JobState.CANCELLED
    assert job.error == JobError(type="Cancel", message="no")
    (attempt,) = job.history
    assert attempt.outcome is AttemptOutcome.CANCELLED
    assert attempt.error == job.error
    assert (attempt.delivery, job.failed) == (leased.delivery, 0)
    ended = await client.wait_one(pushed.id)
    assert ended.error is not None
    assert ended.error.message == "no"


async def test_a_second_push_with_the_key_is_the_first_job(client: AsyncClient) -> None:
    """Also after it ended; with another payload it is refused and nothing is stored."""
    first = await client.push("mail", b"x", job_key="order-1")
    again = await client.push("mail", b"x", job_key="order-1")
    assert (again.id, again.outcome) == (first.id, PushOutcome.DUPLICATE)
    (leased,) = await client.pull("mail", max_jobs=5)
    await client.ack(leased)
    late = await client.push("mail", b"x", job_key="order-1")
    assert (late.id, late.outcome) == (first.id, PushOutcome.DUPLICATE)
    with pytest.raises(IdempotencyMismatch):
        await client.push("mail", b"y", job_key="order-1")
    assert await client.pull("mail") == []


async def test_the_same_request_id_gives_the_same_ids(client: AsyncClient) -> None:
    """A retry after an unknown outcome stores nothing twice."""
    one = await client.push_payloads("mail", [b"a", b"b"], request_id="r-1")
    two = await client.push_payloads("mail", [b"a", b"b"], request_id="r-1")
    assert list(one.ids) == list(two.ids)
    assert len(await client.pull("mail", max_jobs=10)) == 2


async def test_an_atomic_push_is_all_or_nothing(client: AsyncClient) -> None:
    """One job that cannot be stored keeps out all of them."""
    await client.push("mail", b"x", job_key="taken")
    with pytest.raises(IdempotencyMismatch) as refused:
        await client.push_many("mail", [NewJob(b"new"), NewJob(b"other", job_key="taken")])
    assert refused.value.field == "jobs[1].job_key"
    assert len(await client.pull("mail", max_jobs=10)) == 1


async def test_a_full_queue_refuses_and_stores_nothing(client: AsyncClient) -> None:
    """Nothing of the batch; and it says when to try again."""
    await client.queues.update("mail", QueueSettings(max_waiting=2))
    await client.push("mail", b"x")
    with pytest.raises(QueueFull) as refused:
        await client.push_payloads("mail", [b"y", b"z"])
    assert refused.value.retry_after
    assert (await client.queues.get("mail")).counts.ready == 1


async def test_a_dead_job_is_put_back_with_a_clean_slate(client: AsyncClient) -> None:
    """Attempts start again; the lease's counter grows on."""
    pushed = await client.push("mail", b"x", options=JobOptions(max_attempts=1))
    (leased,) = await client.pull("mail")
    await client.fail(leased, "broken")
    assert (await client.jobs.retry(pushed.id)).count == 1
    (again,) = await client.pull("mail", wait=5)
    assert (again.id, again.attempt, again.payload) == (pushed.id, 1, b"x")
    assert again.delivery > leased.delivery
    await client.ack(again)
    assert (await client.wait_one(pushed.id)).state == JobState.COMPLETED


async def test_what_never_was_is_not_found(client: AsyncClient) -> None:
    """By id, and by outcome of an ack."""
    with pytest.raises(JobNotFound):
        await client.jobs.get(12_345)
    assert await client.ack((12_345, 1)) == [SettleOutcome.NOT_FOUND]
