"""Measures the data source against a real server, beside the client without Spark.

python pipeline/benchmarks/source.py [--rows 1000000] [--only source] [--pinned]

Each figure is the best of three; the session and its workers are warm. All share the machine: the
server, Spark's JVM and one Python worker a core. With `--pinned` the server has the first core for
itself, and Spark with its worker shares the second.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from jobline import AsyncClient, LeasedJob, Retention
from jobline.v1.job_admin_service_pb2 import JobFilter, ListJobsRequest
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.job_pb2 import JobError
from jobline.v1.job_service_pb2 import FailAction, FailItem, FailRequest
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_pipeline.session import launched
from jobline_pipeline.source import register
from jobline_server.testing import ServerProcess

TRIES = 3
LOT = 10_000


class Measured:
    """One session and one server, with a new queue for each write."""

    def __init__(self, spark: SparkSession, address: str, rows: int) -> None:
        self.spark = spark
        self.address = address
        self.rows = rows
        self._queues = 0

    def queue(self) -> str:
        """Returns the name of a queue that nobody used."""
        self._queues += 1
        return f"q{self._queues}"

    def write(self, frame: DataFrame, **options: str) -> str:
        """Writes a frame into a new queue; returns its name."""
        queue = self.queue()
        given = {"address": self.address, "queue": queue, **options}
        frame.write.format("jobline").options(**given).mode("append").save()
        return queue

    def read(self, queue: str, schema: str = "") -> None:
        """Reads a queue and drops the rows."""
        reader = self.spark.read.format("jobline")
        reader = reader.schema(schema) if schema else reader
        frame = reader.options(address=self.address, queues=queue).load()
        frame.write.format("noop").mode("overwrite").save()

    def stream(self, folder: str, limit: int) -> None:
        """Streams all events since the last call, to their end."""
        reader = self.spark.readStream.format("jobline").option("events", "pushed")
        reader = reader.options(address=self.address)
        frame = (reader.option("maxEventsPerTrigger", limit) if limit else reader).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        writer.trigger(availableNow=True).start().awaitTermination()


def best(rows: int, what: str, run: Callable[[], Any], tries: int = TRIES) -> None:
    """Prints the best rate of some runs."""
    seconds = []
    for _ in range(tries):
        begun = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begun)
    print(f"{what:<52} {rows / min(seconds):>12,.0f}/s   ({min(seconds):.2f} s)", flush=True)


async def push_alone(address: str, queue: str, rows: int) -> None:
    """Pushes without Spark, four calls at once."""
    payloads = [b"%d" % number for number in range(LOT)]
    async with AsyncClient(address) as client:

        async def push(calls: int) -> None:
            for _ in range(calls):
                await client.push_payloads(queue, payloads)

        await asyncio.gather(*(push(rows // LOT // 4) for _ in range(4)))


async def list_alone(address: str, queue: str, *, runs: bool) -> None:
    """Lists without Spark: payloads in messages that nobody reads."""
    request = ListJobsRequest(
        filter=JobFilter(queue=queue), include_payloads=True, accepts_runs=runs
    )
    request.page_size = 10_000 if runs else 1_000
    async with AsyncClient(address) as client:
        stub = JobAdminServiceStub(client.channel)
        while True:
            page = await stub.ListJobs(request)
            request.page_token = page.next_page_token
            if not page.next_page_token:
                return


async def end_all(address: str, queue: str, rows: int, *, well: bool) -> None:
    """Completes all jobs of a queue that keeps them, or has them die."""
    async with AsyncClient(address) as client:
        await client.queues.update(queue, retention=Retention(count=10_000_000))
        left = rows
        while left:
            jobs = await client.pull(queue, max_jobs=1_000)
            if well:
                await client.ack(*jobs)
            else:
                await JobServiceStub(client.channel).Fail(fails(jobs))
            left -= len(jobs)


def fails(jobs: Sequence[LeasedJob]) -> FailRequest:
    """Returns the call that has jobs die."""
    error = JobError(type="TimeoutError", message="no answer within 5 s")
    dead = FailAction.FAIL_ACTION_DEAD
    return FailRequest(
        items=[FailItem(id=job.id, delivery=job.delivery, error=error, then=dead) for job in jobs]
    )


def measure_sink(on: Measured, few: DataFrame) -> None:
    """Prints what writing costs."""
    rows = on.rows
    text = payloads_of(on.spark, rows)
    pair = on.spark.range(rows, numPartitions=2).withColumn("half", sf.col("id") / 2)
    on.write(few)
    best(
        rows,
        "client alone, 10,000 a call",
        lambda: asyncio.run(push_alone(on.address, on.queue(), rows)),
    )
    best(rows, "sink, payload column", lambda: on.write(text))
    best(rows, "sink, two columns as JSON", lambda: on.write(pair))
    best(rows // 10, "sink, keys by column", lambda: on.write(few, keyColumn="payload"))
    best(rows // 10, "sink, atomic (pushed, then promoted)", lambda: on.write(few, atomic="true"))


def measure_source(on: Measured, few: DataFrame) -> None:
    """Prints what reading costs: jobs that wait, that are completed, and that are dead."""
    rows = on.rows
    waiting, dead = on.write(payloads_of(on.spark, rows)), on.write(few)
    asyncio.run(end_all(on.address, dead, rows // 10, well=False))
    lists(on, waiting, "waiting", rows)
    asyncio.run(end_all(on.address, waiting, rows, well=True))
    lists(on, waiting, "completed", rows)
    lists(on, dead, "dead", rows // 10)


def lists(on: Measured, queue: str, state: str, rows: int) -> None:
    """Prints what it costs to list a queue, without Spark and with it."""
    counts = asyncio.run(counted(on.address, queue, state))
    assert counts == rows, f"{counts} of {rows} jobs are {state}"
    for runs, what in ((True, "runs"), (False, "messages")):
        if runs or rows <= 100_000:
            listed = lambda runs=runs: asyncio.run(list_alone(on.address, queue, runs=runs))  # noqa: E731
            best(rows, f"{state}: client alone, {what}, payloads", listed)
    for schema in ("job_id bigint, state string", "job_id bigint, payload binary", ""):
        columns = ", ".join(schema.split()[::2]) or "all columns"
        best(rows, f"{state}: source, {columns}", lambda schema=schema: on.read(queue, schema))


async def counted(address: str, queue: str, state: str) -> int:
    """Returns how many jobs of a queue are in a state, as the server counts them."""
    async with AsyncClient(address) as client:
        counts = (await client.queues.get(queue)).counts
        return int(getattr(counts, {"waiting": "ready"}.get(state, state)))


def measure_events(on: Measured) -> None:
    """Prints what streaming events costs."""
    for limit, what in ((0, "events, one micro-batch"), (200_000, "events, 200,000 a micro-batch")):
        with tempfile.TemporaryDirectory() as folder:
            on.stream(folder, 0)
            asyncio.run(push_alone(on.address, on.queue(), on.rows))
            best(
                on.rows, what, lambda folder=folder, limit=limit: on.stream(folder, limit), tries=1
            )


def payloads_of(spark: SparkSession, rows: int) -> DataFrame:
    """Returns numbers as text."""
    text = sf.col("id").cast("string").alias("payload")
    return spark.range(rows, numPartitions=2).select(text)


@contextmanager
def served() -> Iterator[str]:
    """Runs a server in a process of its own; gives its address."""
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory(prefix="jobline-bench-") as folder:
        server = ServerProcess(Path(folder) / "data")
        loop.run_until_complete(server.start())
        try:
            yield server.address
        finally:
            loop.run_until_complete(server.kill())


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["sink", "source", "events"])
    parser.add_argument("--pinned", action="store_true")
    given = parser.parse_args()
    if given.pinned:
        os.sched_setaffinity(0, {0})
    with served() as address:
        if given.pinned:
            os.sched_setaffinity(0, {1})
        cores = 1 if given.pinned else 2
        spark = launched("bench", master=f"local[{cores}]", memory="2g").getOrCreate()
        register(spark)
        try:
            on = Measured(spark, address, given.rows)
            few = payloads_of(spark, given.rows // 10).cache()
            few.count()
            if given.only in {None, "sink"}:
                measure_sink(on, few)
            if given.only in {None, "source"}:
                measure_source(on, few)
            if given.only in {None, "events"}:
                measure_events(on)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
