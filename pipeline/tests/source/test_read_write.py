"""Frames of jobs, read from a real server and written to it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from jobline import Client, NewJob
from tests.source.conftest import Server


def read(spark: SparkSession, server: Server, **options: str) -> DataFrame:
    """Returns a frame of jobs."""
    return spark.read.format("jobline").options(address=server.address, **options).load()


def write(frame: DataFrame, server: Server, **options: str) -> None:
    """Writes a frame as jobs."""
    writer = frame.write.format("jobline").options(address=server.address, **options)
    writer.mode("append").save()


def test_what_was_pushed_is_read_back(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """Each column has what the client says of the job; what is unset is null."""
    own = NewJob(
        b"one", name="welcome", job_key="k", priority=7, headers={"a": "b"}, tags=["x", "y"]
    )
    pushed = client.push_many("read-back", [own, NewJob(b"\xff", delay="1h")])
    rows = read(spark, shared_server, queues="read-back").orderBy("job_id").collect()
    assert [row.job_id for row in rows] == [each.id for each in pushed]
    first, second = (row.asDict() for row in rows)
    assert (first["queue"], first["name"], first["state"]) == ("read-back", "welcome", "ready")
    assert bytes(first["payload"]) == b"one"
    assert bytes(second["payload"]) == b"\xff"
    assert (first["job_key"], first["priority"]) == ("k", 7)
    assert (first["headers"], first["tags"]) == ({"a": "b"}, ["x", "y"])
    assert (second["state"], second["job_key"], second["ended_at"]) == ("scheduled", None, None)
    job = client.jobs.get(pushed[1].id)
    assert second["run_at"].replace(tzinfo=UTC) == job.run_at


def test_states_and_filters_choose(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """Dead, completed and waiting jobs of queues, and what the words of the command line choose."""
    client.push_payloads("chosen", [b"1", b"2", b"3"])
    done, dead, _ = client.pull("chosen", max_jobs=3)
    client.ack(done)
    client.fail(dead, "no room", then="dead")
    frame = read(spark, shared_server, queues="chosen", states="completed")
    assert [row.job_id for row in frame.select("job_id").collect()] == [done.id]
    frame = read(spark, shared_server, queues="chosen", filter="error:~room")
    assert [row.job_id for row in frame.collect()] == [dead.id]


def test_jobs_in_runs_are_read_job_by_job(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """Lots of which a part waits, a part is leased and a part has ended, and jobs beside them."""
    queue, payloads = "in-runs", [b"x" * number for number in range(300)]
    client.push_payloads(queue, payloads, headers={"a": "b"})
    client.push_many(queue, [NewJob(b"single", name="other")])
    leased = client.pull(queue, max_jobs=200)
    client.ack(*leased[:100:2])
    columns = ["job_id", "state", "payload", "payload_bytes", "job_key", "name", "worker"]
    rows = read(spark, shared_server, queues=queue).select("headers", *columns).collect()
    listed = {job.id: job for job in client.jobs.list(queue=queue, include_payloads=True)}
    assert sorted(row.job_id for row in rows) == sorted(listed)
    for row in rows:
        job = listed[row.job_id]
        expected = (job.state.name.lower(), job.payload, job.payload_bytes, job.job_key or None)
        assert (row.state, bytes(row.payload), row.payload_bytes, row.job_key) == expected
        assert (row.name, row.worker) == (job.name, job.worker or None)
        assert row.headers == dict(job.options.headers or {})


def test_the_queues_of_a_shard_are_one_partition(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """So that a thousand queues are not a thousand tasks, and each is read once."""
    names = [f"of-shard-{number}" for number in range(9)]
    for name in names:
        client.push_payloads(name, [b"x"] * 3)
    frame = read(spark, shared_server, queues=",".join([*names, names[0]]))
    shards = {client.queues.get(name).shard for name in names}
    assert frame.rdd.getNumPartitions() == len(shards) < len(names)
    counts = frame.groupBy("queue").count().collect()
    assert {row.queue: row["count"] for row in counts} == dict.fromkeys(names, 3)


def test_only_the_columns_of_a_schema_are_read(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """A frame with fewer columns, in another order."""
    client.push_payloads("narrow", [b"1"])
    reader = spark.read.format("jobline").schema("state string, job_id bigint")
    frame = reader.options(address=shared_server.address, queues="narrow").load()
    assert [row.asDict().keys() for row in frame.collect()] == [{"state": 0, "job_id": 0}.keys()]


def test_a_hundred_thousand_rows_are_written_and_read(
    spark: SparkSession, shared_server: Server
) -> None:
    """Pages and lots lose and double nothing; a payload is made of all columns."""
    frame = spark.range(100_000, numPartitions=3).withColumn("half", sf.col("id") / 2)
    write(frame, shared_server, queue="many")
    jobs = read(spark, shared_server, queues="many")
    assert jobs.select("content_type").distinct().collect()[0][0] == "application/json"
    payloads = jobs.select(
        sf.from_json(sf.col("payload").cast("string"), "id bigint, half double").alias("p")
    )
    found = (
        payloads.select("p.*").agg(sf.countDistinct("id"), sf.count("id"), sf.sum("half")).first()
    )
    assert tuple(found) == (100_000, 100_000, sum(range(100_000)) / 2)


def test_options_come_from_columns(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """Queue, key, name, priority, headers and time of a job by column; constants for the rest."""
    at = datetime(2027, 1, 2, tzinfo=UTC)
    frame = spark.createDataFrame(
        [("q-a", "k1", "n1", 1, {"h": "1"}, at, "one"), ("q-b", "k2", "n2", 2, {}, at, "two")],
        "queue string, key string, kind string, p int, h map<string,string>, at timestamp,"
        " text string",
    )
    columns = {
        "queueColumn": "queue",
        "keyColumn": "key",
        "nameColumn": "kind",
        "priorityColumn": "p",
        "headersColumn": "h",
        "runAtColumn": "at",
    }
    write(frame, shared_server, maxAttempts="9", tags="spark, night", **columns)
    job = client.jobs.get_by_key("q-a", "k1")
    assert json.loads(job.payload) == {"text": "one"}
    assert (job.name, job.options.priority, job.options.max_attempts) == ("n1", 1, 9)
    assert (dict(job.options.headers or {}), job.run_at) == ({"h": "1"}, at)
    assert job.options.tags == ("night", "spark")
    assert client.jobs.get_by_key("q-b", "k2").name == "n2"


def test_a_key_makes_a_row_one_job(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """A frame that is written twice is there once, by column and by position."""
    frame = spark.range(5_000, numPartitions=2).select(
        sf.col("id").cast("string").alias("payload"), "id"
    )
    for _ in range(2):
        write(frame, shared_server, queue="by-column", keyColumn="id")
        write(frame, shared_server, queue="by-position", key="position", runId="tuesday")
    assert client.queues.get("by-column").counts.ready == 5_000
    assert client.queues.get("by-position").counts.ready == 5_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"queus": "x"}, "queus is no option of read"),
        ({"states": "sleeping"}, "sleeping is none; there are scheduled"),
        ({"queues": "never-was"}, "there is no queue"),
        ({"address": "127.0.0.1:1"}, "no Jobline server answers at 127.0.0.1:1"),
        ({"filter": "colour:red"}, "filter: "),
    ],
)
def test_a_mistake_is_named(
    spark: SparkSession, shared_server: Server, options: dict[str, str], says: str
) -> None:
    """One sentence in the error of Spark says what is wrong."""
    given = {"address": shared_server.address, **options}
    with pytest.raises(PySparkException, match=says):
        spark.read.format("jobline").options(**given).load().collect()
