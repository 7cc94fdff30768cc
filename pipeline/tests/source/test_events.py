"""Streams of events: once, in order, over restarts of the query and of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from jobline import Client
from tests.source.conftest import Server


def stream(spark: SparkSession, server: Server, **options: str) -> DataFrame:
    """Returns a stream of events."""
    given = {"address": server.address, "events": "all", **options}
    return spark.readStream.format("jobline").options(**given).load()


def into(frame: DataFrame, table: Path, *, now: bool = True) -> StreamingQuery:
    """Starts a query that keeps the rows of a stream; with `now` it ends at what there is."""
    writer = frame.writeStream.format("parquet").option("path", str(table))
    writer = writer.option("checkpointLocation", f"{table}-checkpoint")
    return (writer.trigger(availableNow=True) if now else writer).start()


def kept(spark: SparkSession, table: Path) -> list[Any]:
    """Returns the rows that a query kept, in the order of each shard."""
    frame = spark.read.parquet(str(table))
    return frame.orderBy("shard", "offset", "job_id").collect()


def run_now(frame: DataFrame, table: Path) -> StreamingQuery:
    """Runs a query to its end."""
    query = into(frame, table)
    assert query.awaitTermination(90)
    return query


def test_available_now_ends_with_what_there_is(
    spark: SparkSession, shared_server: Server, client: Client, tmp_path: Path
) -> None:
    """A first run begins now; each later one has what happened since, once."""
    frame = stream(spark, shared_server, queues="now-a,now-b", events="pushed,completed")
    client.push_payloads("now-a", [b"before"])
    run_now(frame, tmp_path / "t")
    first = client.push_payloads("now-a", [b"1"] * 3)
    second = client.push_payloads("now-b", [b"1"] * 2)
    client.push_payloads("now-c", [b"1"])
    (job,) = client.pull("now-a")
    client.ack(job)
    run_now(frame, tmp_path / "t")
    rows = kept(spark, tmp_path / "t")
    assert sorted(row.job_id for row in rows if row.event == "pushed") == sorted(
        [*first.ids, *second.ids]
    )
    (done,) = [row for row in rows if row.event == "completed"]
    assert (done.job_id, done.queue, done.state_before, done.state) == (
        job.id,
        "now-a",
        "active",
        "completed",
    )
    assert (done.attempt, done.error) == (1, None)


def test_a_limit_bounds_micro_batches_by_whole_commits(
    spark: SparkSession, shared_server: Server, client: Client, tmp_path: Path
) -> None:
    """Events come in batches of at least the limit, all of them, and availableNow ends."""
    frame = stream(
        spark, shared_server, queues="limited", events="pushed", maxEventsPerTrigger="30"
    )
    run_now(frame, tmp_path / "t")
    ids = [i for _ in range(20) for i in client.push_payloads("limited", [b"1"] * 10).ids]
    query = run_now(frame, tmp_path / "t")
    sizes = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
    assert sum(sizes) == 200
    assert max(sizes) <= 40
    assert [row.job_id for row in kept(spark, tmp_path / "t")] == ids


def test_events_come_once_and_in_order_over_a_restart_of_the_server(
    spark: SparkSession, own_server: Server, tmp_path: Path
) -> None:
    """The server is killed while a query runs, and while none does."""
    frame = stream(spark, own_server, queues="mail,post")
    query = into(frame, tmp_path / "t", now=False)
    pushed: list[int] = []

    def push() -> None:
        with Client(own_server.address) as client:
            for queue in ("mail", "post"):
                for _ in range(10):
                    pushed.extend(client.push_payloads(queue, [b"1"] * 7).ids)

    while not query.recentProgress:
        query.processAllAvailable()
    push()
    own_server.do(own_server.process.restart)
    push()
    query.processAllAvailable()
    query.stop()
    push()
    own_server.do(own_server.process.restart)
    push()
    run_now(frame, tmp_path / "t")
    rows = [row for row in kept(spark, tmp_path / "t") if row.event == "pushed"]
    assert sorted(row.job_id for row in rows) == sorted(pushed)
    for queue in ("mail", "post"):
        offsets = [row.offset for row in rows if row.queue == queue]
        assert offsets == sorted(offsets)


def test_a_position_that_is_gone_is_said(
    spark: SparkSession, own_server: Server, tmp_path: Path
) -> None:
    """A query fails with a sentence, or goes on from now if it is told to."""
    gone = '{"life": 1, "commit": 1, "shards": {"0": 999, "1": 999, "2": 999, "3": 999}}'
    frame = stream(spark, own_server, startingPosition=gone)
    query = into(frame, tmp_path / "t", now=False)
    with pytest.raises(PySparkException, match="the events after the last position are gone"):
        query.processAllAvailable()
    frame = stream(spark, own_server, startingPosition=gone, failOnDataLoss="false")
    query = into(frame, tmp_path / "u", now=False)
    query.processAllAvailable()
    query.stop()


def test_a_stream_names_its_events(
    spark: SparkSession, shared_server: Server, tmp_path: Path
) -> None:
    """Without them Spark would have given it the columns of jobs."""
    frame = spark.readStream.format("jobline").option("address", shared_server.address).load()
    with pytest.raises(PySparkException, match="a stream is of events"):
        frame.writeStream.format("noop").option(
            "checkpointLocation", "/tmp/none"
        ).start().awaitTermination(30)
