"""Writes that are cut off and made again: the queue has each job once, or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from jobline import Client
from tests.source.conftest import Server
from tests.source.driver import write

# A driver takes a while to start where the machine has more to do.
pytestmark = pytest.mark.timeout(300)
DRIVER = Path(__file__).with_name("driver.py")


def cut_off(server: Server, client: Client, rows: int, options: dict[str, str], jobs: int) -> None:
    """Starts a driver that writes, and kills it with its JVM as soon as a queue has some jobs."""
    words = [f"{key}={value}" for key, value in options.items()]
    driver = subprocess.Popen(
        [sys.executable, str(DRIVER), server.address, str(rows), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + 100
    try:
        while (there := waiting(client, options["queue"])) < jobs:
            assert driver.poll() is None, f"the driver ended before it had written {jobs} jobs"
            assert time.monotonic() < until, f"the driver wrote {there} jobs in all this time"
            time.sleep(0.01)
        assert there < rows, "the driver was faster than this test"
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(10)


def waiting(client: Client, queue: str) -> int:
    """Returns how many jobs of a queue wait, whether held or ready."""
    for found in client.queues.list():
        if found.name == queue:
            return found.counts.ready + found.counts.scheduled
    return 0


def assert_once(spark: SparkSession, server: Server, queue: str, rows: int) -> None:
    """Checks that a queue has a READY job of each row, and beside these only cancelled ones."""
    frame = spark.read.format("jobline").schema("payload binary, state string")
    frame = frame.options(address=server.address, queues=queue).load()
    number = sf.col("payload").cast("string").cast("bigint")
    found = (
        frame.where("state != 'cancelled'")
        .groupBy("state")
        .agg(sf.count(number), sf.countDistinct(number), sf.max(number))
    )
    assert [tuple(row) for row in found.collect()] == [("ready", rows, rows, rows - 1)]


def test_a_keyed_write_whose_driver_was_killed_is_there_once(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """The second run pushes what the first did not."""
    rows, queue = 40_000, "killed"
    options = {"queue": queue, "keyColumn": "key", "calls": "1"}
    cut_off(shared_server, client, rows, options, 1_000)
    write(spark, shared_server.address, rows, options)
    assert_once(spark, shared_server, queue, rows)


def test_an_atomic_write_whose_driver_was_killed_is_there_once(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """Nothing of the first run is ever handed out, and a third run finds that it was written."""
    rows, queue = 200_000, "atomic-killed"
    options = {"queue": queue, "atomic": "true", "runId": "monday", "calls": "1"}
    cut_off(shared_server, client, rows, options, 10_000)
    assert not client.pull(queue)
    for _ in range(2):
        write(spark, shared_server.address, rows, options)
        assert client.queues.get(queue).counts.ready == rows
        assert client.queues.get(queue).counts.scheduled == 0
    assert_once(spark, shared_server, queue, rows)


@pytest.mark.fault
@pytest.mark.parametrize(
    "how", [{"key": "position"}, {"atomic": "true"}], ids=["keys by position", "atomic"]
)
def test_a_stream_whose_driver_was_killed_is_there_once(
    spark: SparkSession,
    shared_server: Server,
    client: Client,
    tmp_path: Path,
    how: dict[str, str],
) -> None:
    """The micro-batch that was cut off is written again."""
    rows, queue = 60_000, f"stream-{next(iter(how))}"
    spark.range(rows, numPartitions=6).write.parquet(str(tmp_path / "in"))
    options = {"queue": queue, "stream": str(tmp_path), "calls": "1", **how}
    cut_off(shared_server, client, rows, options, 11_000)
    write(spark, shared_server.address, rows, options)
    assert_once(spark, shared_server, queue, rows)


def test_an_atomic_write_that_fails_leaves_nothing(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """One row in the last partition cannot be made; the others were pushed and are dropped."""
    queue = "atomic-failed"
    bad = sf.when(sf.col("id") == 3_999, sf.raise_error(sf.lit("no"))).otherwise(sf.col("id"))
    frame = spark.range(4_000, numPartitions=4).select(bad.cast("string").alias("payload"))
    writer = frame.write.format("jobline").option("address", shared_server.address)
    with pytest.raises(PySparkException):
        writer.options(queue=queue, atomic="true").mode("append").save()
    assert waiting(client, queue) == 0


def test_a_full_queue_is_waited_for(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """Backpressure: a write goes on as the queue has room, and ends when its patience is over."""
    queue = "full"
    client.queues.update(queue, max_waiting=1_000)
    frame = spark.range(1_000, numPartitions=1).select(sf.lit("x").alias("payload"))
    writer = frame.write.format("jobline").mode("append")
    given = {"address": shared_server.address, "queue": queue}
    writer.options(**given).save()
    with pytest.raises(PySparkException, match="full"):
        writer.options(**given, patience="0.5").save()
    assert waiting(client, queue) == 1_000
    client.queues.drain(queue)
    writer.options(**given, patience="20").save()
    assert waiting(client, queue) == 1_000
