"""Messages to rows, rows to payloads, positions and options: without Spark or a server."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from jobline.v1 import event_pb2, job_admin_service_pb2, job_pb2
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source.conversions import (
    EVENTS,
    JOBS,
    arrow_schema,
    moments_of,
    payloads_of,
    runs_batch,
    texts_of,
)
from jobline_pipeline.source.job_rows import page_batches
from jobline_pipeline.source.lots import MIXED_ROWS, Rows, lots_of
from jobline_pipeline.source.options import events_wanted, jobs_wanted, writing
from jobline_pipeline.source.positions import (
    Position,
    from_offset,
    from_token,
    is_before,
    place_of,
)

AT = datetime(2026, 11, 24, 1, 2, 3, 456_000, tzinfo=UTC)


def a_job() -> job_pb2.Job:
    """Returns a job with something in most fields."""
    job = job_pb2.Job(id=7, queue="q", state=job_pb2.JOB_STATE_DEAD, payload=b"p", payload_bytes=1)
    job.options.name = "n"
    job.options.tags.extend(["a", "b"])
    job.options.headers["h"] = "v"
    job.error.type = "ValueError"
    job.reason = job_pb2.END_REASON_TIMEOUT
    job.pushed_at.FromDatetime(AT)
    return job


def test_jobs_become_rows_and_what_is_unset_is_null() -> None:
    """All columns of a job with much and of one with nothing."""
    page = job_admin_service_pb2.ListJobsResponse(jobs=[a_job(), job_pb2.Job(id=8)])
    (batch,) = page_batches(page, arrow_schema(JOBS, JOBS, "jobs"))
    full, empty = batch.to_pylist()
    assert (full["job_id"], full["state"], full["reason"]) == (7, "dead", "timeout")
    assert (full["tags"], full["headers"], full["pushed_at"]) == (["a", "b"], [("h", "v")], AT)
    nothing = ("state", "reason", "pushed_at", "ended_at", "worker", "error", "job_key", "result")
    assert {empty[name] for name in nothing} == {None}
    assert (empty["payload"], empty["attempts"], empty["tags"]) == (b"", 0, [])


def a_run(first_id: int, *payloads: bytes, **own: object) -> job_admin_service_pb2.JobRun:
    """Returns a run of the jobs that `a_job` makes."""
    shared = a_job()
    for field in ("id", "payload", "payload_bytes"):
        shared.ClearField(field)
    shared.ended_at.FromDatetime(AT)
    return job_admin_service_pb2.JobRun(
        shared=shared, first_id=first_id, count=len(payloads), payloads=payloads, **own
    )


def test_runs_of_jobs_become_the_rows_of_their_jobs() -> None:
    """What they share is in each row; what each has of its own goes before it."""
    headers = job_pb2.HeaderColumn(key="h", values=["own", ""])
    other = job_pb2.HeaderColumn(key="x", values=["", "y"])
    runs = [
        a_run(10, b"a", b"bb", job_keys=["k", ""], header_columns=[headers, other]),
        a_run(20, b"", b"c", ended_ms=[1_000, 2_000]),
        a_run(30, b"d"),
    ]
    page = job_admin_service_pb2.ListJobsResponse(runs=runs, jobs=[a_job()])
    of_runs, of_jobs = page_batches(page, arrow_schema(JOBS, JOBS, "jobs"))
    rows = of_runs.to_pylist()
    assert [row["job_id"] for row in rows] == [10, 11, 20, 21, 30]
    assert [row["payload"] for row in rows] == [b"a", b"bb", b"", b"c", b"d"]
    assert [row["payload_bytes"] for row in rows] == [1, 2, 0, 1, 1]
    assert [row["job_key"] for row in rows] == ["k", None, None, None, None]
    assert [dict(row["headers"]) for row in rows][:3] == [
        {"h": "own"},
        {"h": "v", "x": "y"},
        {"h": "v"},
    ]
    seconds = [datetime(1970, 1, 1, 0, 0, at, tzinfo=UTC) for at in (1, 2)]
    assert [row["ended_at"] for row in rows] == [AT, AT, *seconds, AT]
    own = {"job_id", "payload", "payload_bytes", "job_key", "headers", "ended_at"}
    (single,) = of_jobs.to_pylist()
    for row in rows:
        assert {name: row[name] for name in row if name not in own} == {
            name: single[name] for name in single if name not in own
        }


@pytest.mark.parametrize("sizes", [[3, 4], []])
def test_sizes_are_known_without_payloads(sizes: list[int]) -> None:
    """One each, or one for all."""
    run = job_admin_service_pb2.JobRun(first_id=1, count=2, payload_bytes=sizes)
    run.shared.payload_bytes = 0 if sizes else 5
    schema = arrow_schema(StructType([JOBS["payload_bytes"], JOBS["headers"]]), JOBS, "jobs")
    (batch,) = page_batches(job_admin_service_pb2.ListJobsResponse(runs=[run]), schema)
    assert batch.column("payload_bytes").to_pylist() == (sizes or [5, 5])
    assert batch.column("headers").to_pylist() == [[], []]


def test_runs_of_events_become_rows_in_order() -> None:
    """Runs of ids with values of their own and with shared ones, and an event of a queue."""
    shared = event_pb2.Event(
        shard=2, offset=9, queue="q", name="all", kind=event_pb2.EVENT_KIND_LEASED, attempt=4
    )
    shared.at.FromDatetime(AT)
    run = event_pb2.EventRun(
        shared=shared, starts=[10, 20], counts=[2, 1], names=["a", ""], run_at_ms=[0, 1_000]
    )
    queue = event_pb2.EventRun(
        shared=event_pb2.Event(kind=event_pb2.EVENT_KIND_QUEUE_CREATED, queue="q")
    )
    single = event_pb2.EventRun(shared=shared, starts=[30, 32])
    rows = runs_batch([run, queue, single], arrow_schema(EVENTS, EVENTS, "events")).to_pylist()
    assert [row["job_id"] for row in rows] == [10, 11, 20, None, 30, 32]
    assert [row["name"] for row in rows] == ["a", "a", None, None, "all", "all"]
    assert [row["attempt"] for row in rows] == [4, 4, 4, None, 4, 4]
    assert [row["run_at"] for row in rows][:3] == [
        None,
        None,
        datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    ]
    assert [row["event"] for row in rows][2:4] == ["leased", "queue_created"]
    assert (rows[0]["at"], rows[0]["offset"], rows[0]["progress"]) == (AT, 9, None)


@pytest.mark.parametrize(
    ("field", "says"),
    [
        (StructField("color", StringType()), "jobs have no column color"),
        (StructField("job_id", IntegerType()), "column job_id of jobs is bigint, not int"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(field: StructField, says: str) -> None:
    """The sentence names the column."""
    with pytest.raises(PipelineError, match=says):
        arrow_schema(StructType([field]), JOBS, "jobs")


def test_payloads_are_a_column_or_json_of_the_others() -> None:
    """Text and bytes as they are; times, decimals, maps and nulls as JSON has them."""
    batch = pa.RecordBatch.from_pydict(
        {
            "text": ["é", None],
            "at": [AT, None],
            "day": [date(2026, 1, 2), None],
            "money": [Decimal("1.20"), None],
            "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    assert payloads_of(batch, "text", ()) == ["é".encode(), b""]
    first, second = map(json.loads, payloads_of(batch, None, batch.schema.names))
    assert first == {
        "text": "é",
        "at": AT.isoformat(),
        "day": "2026-01-02",
        "money": "1.20",
        "map": {"a": 1},
    }
    assert set(second.values()) == {None}
    with pytest.raises(PipelineError, match="a payload is binary or text"):
        payloads_of(batch, "day", ())


def test_keys_and_times_are_checked() -> None:
    """A row without a key could be written twice; a time without a zone is UTC."""
    batch = pa.RecordBatch.from_pydict(
        {"key": pa.array([1, None]), "at": pa.array([AT.replace(tzinfo=None), None])}
    )
    with pytest.raises(PipelineError, match="rows without a key"):
        texts_of(batch, "key", is_key=True)
    assert moments_of(batch, "at") == [AT, None]
    with pytest.raises(PipelineError, match="is a timestamp"):
        moments_of(batch, "key")


def test_lots_have_one_queue_and_fit_a_call() -> None:
    """Rows with keys come by a thousand, large ones by their bytes."""
    how = writing({"queueColumn": "q", "keyColumn": "k"})
    size = 2_500
    batch = pa.RecordBatch.from_pydict(
        {
            "q": ["a" if number % 2 else "b" for number in range(size)],
            "k": [str(number) for number in range(size)],
            "payload": [b"x"] * size,
        }
    )
    rows = Rows("payload", ())
    lots = list(lots_of(batch, how, rows, None))
    assert {lot.queue: len(lot) for lot in lots[:1]} == {"b": MIXED_ROWS}
    assert sum(map(len, lots)) == size
    large = pa.RecordBatch.from_pydict({"payload": [b"x" * (5 << 20)] * 3})
    plain = writing({"queue": "q"})
    assert [len(lot) for lot in lots_of(large, plain, rows, None)] == [1, 1, 1]


def test_positions_are_compared_within_and_across_lives() -> None:
    """In a life the commit counts; after a restart the offsets do, and what was never written is
    gone.
    """
    end = Position(3, 44, (7, 3))
    assert from_token(end.token()) == end
    assert from_offset(json.loads(json.dumps(end.as_offset()))) == end
    within = place_of("3.43.7.2@1+20")
    assert (within.begun, within.written) == (Position(3, 43, (7, 2)), True)
    assert is_before(within, 1, 3, end)
    assert not is_before(place_of("3.44.7.3@1+0"), 1, 4, end)
    assert is_before(place_of("4.2.7:5.2@1+0"), 1, 3, end)
    assert not is_before(place_of("4.2.7.3@1+0"), 1, 4, end)
    assert not is_before(place_of("4.2.7.2@+0"), 1, 2, end)
    assert Position(4, 0, (7, 3)).covers(end)
    assert not Position(4, 100, (7, 2)).covers(end)
    with pytest.raises(PipelineError, match="no position"):
        from_offset({"files": 3})
    with pytest.raises(PipelineError, match="unknown form"):
        from_token("what")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "needs the option queue"),
        ({"queue": "a", "queueColumn": "b"}, "not both"),
        ({"queue": "a", "key": "row"}, 'can only be "position"'),
        ({"queue": "a", "key": "position", "keyColumn": "b"}, "not both"),
        ({"queue": "a", "atomic": "yes"}, "must be true or false"),
        ({"queue": "a", "atomic": "true", "keyColumn": "b"}, "does not go together with keys"),
        ({"queue": "a", "atomic": "true", "delay": "5"}, "does not go together with delays"),
        ({"queue": "a", "calls": "many"}, "must be a whole number"),
        ({"queue": "a", "calls": "0"}, "must be 1 … 64"),
        ({"queue": "a", "patience": "-1"}, "must be above 0"),
        ({"queue": "a", "colour": "red"}, "colour is no option of write"),
    ],
)
def test_options_that_no_write_can_have_are_refused(options: dict[str, str], says: str) -> None:
    """Before anything is pushed."""
    with pytest.raises(PipelineError, match=says):
        writing(options)


def test_options_of_reads_are_checked() -> None:
    """Kinds of events and states by name, in any case."""
    assert jobs_wanted({"States": "Dead, ready"}).states == (6, 3)
    assert events_wanted({"events": "pushed DEAD"}).kinds == (1, 9)
    assert events_wanted({"events": "all"}).kinds == ()
    with pytest.raises(PipelineError, match="events: slept is none"):
        events_wanted({"events": "slept"})
    with pytest.raises(PipelineError, match="pagesize: must be 1 … 10000"):
        jobs_wanted({"pageSize": "50000"})
