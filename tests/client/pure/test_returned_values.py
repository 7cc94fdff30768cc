"""What operators' calls return: dataclasses that say all that the protocol does."""

from __future__ import annotations

import dataclasses
import inspect
import pydoc
from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

import pytest

import jobline
from jobline import (
    AsyncClient,
    AttemptOutcome,
    BackoffKind,
    Client,
    ConnectedWorker,
    DeadStats,
    EndReason,
    Event,
    EventKind,
    Explanation,
    Job,
    JobError,
    JobOptions,
    JobState,
    ObstacleKind,
    Queue,
    QueueSettings,
    QueueWeight,
    ServerStats,
)
from jobline._asynchronous import admin as asynchronous_admin
from jobline._asynchronous import job_admin as asynchronous_jobs
from jobline._asynchronous import queues as asynchronous_queues
from jobline._blocking import admin as blocking_admin
from jobline._blocking import job_admin as blocking_jobs
from jobline._blocking import queues as blocking_queues
from jobline._reading import read
from jobline.v1 import (
    admin_service_pb2,
    dead_letter_service_pb2,
    event_pb2,
    job_admin_service_pb2,
    job_pb2,
    queue_pb2,
)

# What the protocol reserves and no server serves yet.
LATER = {"delays", "group"} | {
    field.name for field in job_pb2.JobOptions.DESCRIPTOR.fields if field.number >= 20
} - {"tags", "phases"}
RETURNED: list[tuple[type, Any]] = [
    (Job, job_pb2.Job),
    (Queue, queue_pb2.Queue),
    (Event, event_pb2.Event),
    (Explanation, job_admin_service_pb2.ExplainJobResponse),
    (DeadStats, dead_letter_service_pb2.GetDeadLetterStatsResponse),
    (ServerStats, admin_service_pb2.GetStatsResponse),
    (ConnectedWorker, admin_service_pb2.Worker),
]


def missing(kind: Any, descriptor: Any) -> list[str]:
    """The fields of a message, and of those within it, that a dataclass does not have."""
    hints = get_type_hints(kind)
    found = []
    for field in descriptor.fields:
        if field.name in LATER:
            continue
        if field.name not in hints:
            found.append(f"{kind.__name__}.{field.name}")
            continue
        within = [one for one in _types_in(hints[field.name]) if dataclasses.is_dataclass(one)]
        if within and field.message_type is not None:
            found += missing(within[0], field.message_type)
    return found


def _types_in(hint: Any) -> list[Any]:
    return [hint, *getattr(hint, "__args__", ())]


@pytest.mark.parametrize(("kind", "message"), RETURNED)
def test_no_field_of_the_protocol_is_left_out(kind, message):
    """Trial D6: nobody needs the message for something that the value does not say."""
    assert missing(kind, message.DESCRIPTOR) == []


@pytest.mark.parametrize(
    ("kind", "wire"),
    [
        (JobState, job_pb2.JobState),
        (EndReason, job_pb2.EndReason),
        (AttemptOutcome, job_pb2.AttemptOutcome),
        (ObstacleKind, job_admin_service_pb2.ObstacleKind),
        (EventKind, event_pb2.EventKind),
    ],
)
def test_enums_have_every_value_of_the_protocol(kind, wire):
    """Trial D6: by the same names and numbers."""
    prefix = wire.Name(0).removesuffix("UNSPECIFIED")
    assert {name.removeprefix(prefix): number for name, number in wire.items()} == {
        member.name: member.value for member in kind
    }


@pytest.mark.parametrize("kind", [*(kind for kind, _ in RETURNED), jobline.JobFilter])
def test_values_are_frozen_slotted_and_documented(kind):
    """Trial D6: `help()` shows each field and says what it is."""
    assert "__slots__" in vars(kind)
    assert vars(kind)["__dataclass_params__"].frozen
    shown = pydoc.render_doc(kind)
    assert all(f"{field.name}:" in shown for field in dataclasses.fields(kind))


def test_a_message_that_says_little_is_a_value_all_the_same():
    """None where there is nothing; enums a newer server made up are UNSPECIFIED."""
    job = Job.from_message(job_pb2.Job(id=5, queue="q"))
    assert (job.pushed_at, job.error, job.options, job.history) == (None, None, JobOptions(), ())
    assert read(Event, event_pb2.Event()).kind is EventKind.UNSPECIFIED
    stats = read(ServerStats, admin_service_pb2.GetStatsResponse())
    assert (stats.commit_time, stats.shards) == (None, ())
    assert Queue.from_message(queue_pb2.Queue()).settings == QueueSettings()


def test_a_message_becomes_plain_python():
    """Trial D6: moments, spans, enums, errors and parts of parts."""
    message = job_pb2.Job(id=5, state=job_pb2.JOB_STATE_DEAD, reason=job_pb2.END_REASON_STALLED)
    message.pushed_at.FromJsonString("2026-01-31T18:00:00Z")
    message.options.name = "welcome"
    message.options.backoff.kind = job_pb2.BACKOFF_KIND_FIXED
    message.options.lease.FromSeconds(60)
    message.error.type = "Smtp"
    attempt = message.history.add(attempt=1, outcome=job_pb2.ATTEMPT_OUTCOME_FAILED)
    attempt.error.type = "Smtp"
    job = Job.from_message(message)
    assert (job.state, job.reason, job.name) == (JobState.DEAD, EndReason.STALLED, "welcome")
    assert job.pushed_at == datetime(2026, 1, 31, 18, tzinfo=UTC)
    assert job.options.lease == timedelta(minutes=1)
    assert job.options.backoff is not None
    assert job.options.backoff.kind is BackoffKind.FIXED
    assert job.error == JobError(type="Smtp")
    assert job.history[0].outcome is AttemptOutcome.FAILED
    worker = admin_service_pb2.Worker(session="s")
    worker.queues.add(queue="q", weight=2)
    worker.description.labels["zone"] = "b"
    shown = read(ConnectedWorker, worker)
    assert shown.queues == (QueueWeight("q", 2),)
    assert shown.description.labels == {"zone": "b"}


@pytest.mark.parametrize(
    ("state", "failed", "attempts"),
    [
        (JobState.READY, 0, 0),
        (JobState.ACTIVE, 0, 1),
        (JobState.COMPLETED, 0, 1),
        (JobState.COMPLETED, 2, 3),
        (JobState.READY, 1, 1),
        (JobState.DEAD, 3, 3),
    ],
)
def test_attempts_count_the_one_that_completes(state, failed, attempts):
    """Trial D7: a job that completed at once had one attempt, not none."""
    message = job_pb2.Job(state=job_pb2.JobState.ValueType(state), attempts=failed)
    job = Job.from_message(message)
    assert (job.attempts, job.failed) == (attempts, failed)
    if state in {JobState.COMPLETED, JobState.DEAD}:
        message.stale_from, message.state = message.state, job_pb2.JOB_STATE_STALE
        assert Job.from_message(message).attempts == attempts


PAIRS: list[tuple[Any, Any]] = [
    (Client, AsyncClient),
    (blocking_jobs.JobApi, asynchronous_jobs.JobApi),
    (blocking_queues.QueueApi, asynchronous_queues.QueueApi),
    (blocking_admin.DeadLetterApi, asynchronous_admin.DeadLetterApi),
    (blocking_admin.AdminApi, asynchronous_admin.AdminApi),
]


def signatures(kind: Any) -> dict[str, Any]:
    """The parameters of each public method, by name."""
    methods = inspect.getmembers(kind, inspect.isfunction)
    return {
        name: list(inspect.signature(method).parameters.values())
        for name, method in methods
        if not name.startswith("_")
    }


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_both_clients_take_the_same(blocking, awaited):
    """Trial D6: what one of them learns, the other one knows."""
    assert signatures(blocking) == signatures(awaited)


def test_help_shows_each_condition():
    """Trial D6: `help(client.jobs.list)` and those of its kind."""
    shown = pydoc.render_doc(blocking_jobs.JobApi.list)
    for name in ("queue", "state", "error_contains", "older"):
        assert f"{name}: " in shown
    assert "max_waiting: " in pydoc.render_doc(blocking_queues.QueueApi.update)
