"""Hand-outs as bytes: the same as a message of messages, and cut where they are long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.dispatch.frames import Confirm, ServerFrame
from jobline_server.engine.commands import Leased, LeasedJob, LeasedRun
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.phases import FinishedPhase
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions, LeaseReason
from jobline_server.rpc.convert import leases
from jobline_server.rpc.convert.leases import leases_in, messages_of, pull_response
from jobline_server.rpc.convert.stream import server_messages
from jobline_server.rpc.limits import DELIVERY_BYTES_TARGET
from jobline_server.wire.options import options_to_message
from tests.pushed_payloads import options_of, with_columns

OPTIONS = [DEFAULT_OPTIONS, JobOptions(name="a"), JobOptions(headers=(("x", "y"),), priority=-1)]

# Neighbours among them, and where a varint becomes longer.
job_ids = st.integers(1, 2**53 - 1) | st.builds(
    int.__add__, st.sampled_from([2**7, 2**14, 2**21, 2**49]), st.integers(-3, 3)
)
leased_jobs = st.builds(
    LeasedJob,
    id=job_ids,
    delivery=st.sampled_from([1, 2]) | st.integers(1, 2**63),
    queue=st.sampled_from(["q", "other"]),
    options=st.sampled_from(OPTIONS),
    payload=st.binary(max_size=300),
    attempt=st.integers(1, 3),
    reason=st.sampled_from(LeaseReason),
    lease_ms=st.sampled_from([1_000, 30_000]),
    worker_checkpoint=st.sampled_from([b"", b"", b"left"]),
    pushed_ms=st.sampled_from([0, 1_700_000_000_123]),
    job_key=st.sampled_from(["", "", "key"]),
    group=st.sampled_from(["", "", "", "group"]),
    continues_group=st.booleans(),
)


def slowly(job: LeasedJob) -> job_pb2.LeasedJob:
    """The slow twin: field by field."""
    message = job_pb2.LeasedJob(
        id=job.id,
        delivery=job.delivery,
        queue=job.queue,
        options=options_to_message(job.options),
        payload=job.payload,
        attempt=job.attempt,
        reason=job_pb2.LeaseReason.ValueType(job.reason),
        lease_ms=job.lease_ms,
        checkpoint=job.worker_checkpoint,
        job_key=job.job_key,
        group=job.group,
        continues_group=job.continues_group,
    )
    message.pushed_at.FromMilliseconds(job.pushed_ms)
    return message


def settled(message: job_pb2.LeasedJob) -> job_pb2.LeasedJob:
    """With sub-messages that are unset and those that are empty made the same."""
    message.options.SetInParent()
    message.pushed_at.SetInParent()
    return message


def whole_response(leased: Leased) -> bytes:
    """A reply that has room for everything."""
    response, rest = pull_response(leased, 1 << 30)
    assert rest == []
    return response


@given(st.lists(leased_jobs, max_size=12))
def test_rows_are_what_the_slow_way_writes(jobs: list[LeasedJob]) -> None:
    """Whatever neighbours share or do not share."""
    written = job_service_pb2.PullResponse.FromString(whole_response(Leased(jobs=jobs)))

    assert [settled(job) for job in written.jobs] == [settled(slowly(job)) for job in jobs]


def jobs_of(run: LeasedRun) -> list[LeasedJob]:
    """A run as its jobs."""
    return [
        LeasedJob(
            id=run.first_id + index,
            delivery=run.delivery,
            queue=run.queue,
            options=options_of(run.payloads, index, run.options),
            payload=payload,
            attempt=1,
            reason=LeaseReason.FIRST,
            lease_ms=run.lease_ms,
            worker_checkpoint=b"",
            pushed_ms=run.pushed_ms,
            job_key=run.payloads.job_key_of(index),
        )
        for index, payload in enumerate(run.payloads)
    ]


def test_results_of_phases_come_with_a_lease_and_no_others() -> None:
    """The writer keeps one message for all jobs."""
    phase = FinishedPhase(1, 2, 1, b"rows")
    jobs = [
        LeasedJob(n, 1, "q", OPTIONS[0], b"", 1, LeaseReason.FIRST, 1, b"", 0, "", phases=phases)
        for n, phases in ((1, (phase,)), (2, ()), (3, (phase, phase)))
    ]

    written = job_service_pb2.PullResponse.FromString(whole_response(Leased(jobs=jobs)))

    assert [list(job.phase_results) for job in written.jobs] == [[b"rows"], [], [b"rows"] * 2]


leased_runs = st.builds(
    LeasedRun,
    first_id=st.one_of(st.integers(1, 300), st.integers(1, 2**53 - 1_000)),
    delivery=st.integers(1, 2**63),
    queue=st.sampled_from(["q", "other"]),
    options=st.sampled_from(OPTIONS),
    payloads=st.one_of(
        st.lists(st.binary(max_size=300), min_size=1, max_size=5).flatmap(with_columns),
        st.integers(1, 400).map(lambda count: Payloads.of([b"x" * 100] * count)),
        st.integers(1, 300).map(lambda count: Payloads.of([b"", b"x" * 2_000] * count)),
    ),
    lease_ms=st.sampled_from([1_000, 30_000]),
    pushed_ms=st.sampled_from([0, 1_700_000_000_123]),
)


@given(st.lists(leased_runs, max_size=3), st.lists(leased_jobs, max_size=2))
def test_runs_told_one_by_one_are_what_the_slow_way_writes(
    runs: list[LeasedRun], jobs: list[LeasedJob]
) -> None:
    """Wherever ids and lengths of payloads begin to differ."""
    leased = Leased(jobs=jobs, runs=runs, one_by_one=True)
    written = job_service_pb2.PullResponse.FromString(whole_response(leased))

    told = [job for run in runs for job in jobs_of(run)] + jobs
    assert [settled(job) for job in written.jobs] == [settled(slowly(job)) for job in told]
    assert not written.runs


def run(sizes: list[int]) -> LeasedRun:
    """A run with payloads of these sizes."""
    payloads = Payloads.of([bytes(size) for size in sizes])
    return LeasedRun(1_000, 7, "q", JobOptions(name="a"), payloads, 30_000, 1_700_000_000_001)


@pytest.mark.parametrize(
    "sizes",
    [[1], [100] * 10_000, [300_000] * 40, [DELIVERY_BYTES_TARGET + 1] * 3, [0] * 5, [5_000_000, 1]],
    ids=["one", "many small", "large", "over the target each", "empty", "one over, one small"],
)
def test_a_long_run_is_cut_into_messages_that_clients_take(sizes: list[int]) -> None:
    """Ids go on where the part before ended, and nothing is lost."""
    messages = list(server_messages(ServerFrame(leased=[Leased(runs=[run(sizes)])])))

    parts = [job_service_pb2.StreamResponse.FromString(message).runs for message in messages]
    runs = [part for several in parts for part in several]
    assert [len(payload) for part in runs for payload in part.payloads] == sizes
    starts = [part.first_id for part in runs]
    counts = [len(part.payloads) for part in runs]
    assert starts == [1_000 + sum(counts[:at]) for at in range(len(counts))]
    most = max(DELIVERY_BYTES_TARGET, *sizes) + 100 + 10 * max(counts)
    assert max(map(len, messages)) <= most


def test_confirms_come_with_the_first_message_of_a_long_delivery() -> None:
    """A frame keeps its order when it is cut."""
    frame = ServerFrame(confirms=[Confirm(4, [])], leased=[Leased(runs=[run([3_000_000] * 2)])])

    messages = [job_service_pb2.StreamResponse.FromString(one) for one in server_messages(frame)]

    assert [confirm.seq for confirm in messages[0].confirms] == [4]
    assert sum(len(message.confirms) for message in messages) == 1


def test_a_heartbeat_is_an_empty_message() -> None:
    """Unset fields take no bytes."""
    assert list(server_messages(ServerFrame())) == [b""]


def test_a_delivery_is_written_as_it_is_taken() -> None:
    """Trial E6: a worker that does not read holds one message, and not all that it was handed."""
    asked = []

    def fields() -> Iterator[bytes]:
        for number in range(10):
            asked.append(number)
            yield bytes(1 << 20)

    messages = messages_of(b"", fields())

    assert len(next(messages)) == 2 << 20
    assert asked == [0, 1, 2]
    assert sum(map(len, messages)) == 8 << 20


def test_a_message_holds_a_bounded_number_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small they are: the loop stands still while it is made."""
    monkeypatch.setattr(leases, "DELIVERY_FIELDS_MAX", 3)
    messages = messages_of(b"first", [b"%d" % number for number in range(7)])
    assert list(messages) == [b"first012", b"345", b"6"]


@pytest.mark.parametrize("one_by_one", [False, True], ids=["runs", "rows"])
def test_a_reply_ends_where_the_caller_takes_no_more(one_by_one: bool) -> None:
    """Trial C6: headers and checkpoints count too; jobs that do not fit are returned apart."""
    options = JobOptions(headers=(("x", "y" * 8_000),))
    job: dict[str, Any] = {
        "delivery": 7,
        "queue": "q",
        "options": options,
        "lease_ms": 1_000,
        "pushed_ms": 0,
    }
    run = LeasedRun(first_id=1, payloads=Payloads.of([b"x" * 100] * 400), **job)
    rest_of: dict[str, Any] = {"attempt": 1, "reason": LeaseReason.FIRST, "job_key": ""}
    jobs = [
        LeasedJob(id=1_000 + index, payload=b"", worker_checkpoint=bytes(60_000), **job, **rest_of)
        for index in range(100)
    ]
    leased = Leased(jobs=jobs, runs=[run], one_by_one=one_by_one)
    raw, rest = pull_response(leased, 4 << 20)
    assert len(raw) <= 4 << 20
    told = job_service_pb2.PullResponse.FromString(raw)
    assert rest
    assert [*leases_in([told]), *rest] == [
        *((1 + index, 7) for index in range(400)),
        *((1_000 + index, 7) for index in range(100)),
    ]
