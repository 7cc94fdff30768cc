"""Measures the data source against a real server, beside the client without Spark.

python pipeline/benchmarks/source.py [--rows 1000000]

Each figure is the best of three; the session and its workers are warm. All share the machine: the
server, Spark's JVM and one Python worker a core.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from jobline import AsyncClient
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


async def list_alone(address: str, queue: str) -> None:
    """Lists without Spark, as messages that nobody reads."""
    async with AsyncClient(address) as client:
        token = "begin"
        while token:
            page = await client.jobs.list_page(
                queue=queue, page_size=1_000, page_token="" if token == "begin" else token
            )
            token = page.next_page_token


def measure(spark: SparkSession, address: str, rows: int) -> None:
    """Prints all figures."""
    on = Measured(spark, address, rows)
    text = spark.range(rows, numPartitions=2).select(sf.col("id").cast("string").alias("payload"))
    pair = spark.range(rows, numPartitions=2).withColumn("half", sf.col("id") / 2)
    few = text.limit(rows // 10).repartition(2).cache()
    few.count()
    on.write(few)
    best(
        rows,
        "client alone, 10,000 a call",
        lambda: asyncio.run(push_alone(address, on.queue(), rows)),
    )
    best(rows, "sink, payload column", lambda: on.write(text))
    best(rows, "sink, two columns as JSON", lambda: on.write(pair))
    best(rows // 10, "sink, keys by column", lambda: on.write(few, keyColumn="payload"))
    best(rows // 10, "sink, atomic (pushed, then promoted)", lambda: on.write(few, atomic="true"))
    queue = on.write(few)
    best(
        rows // 10, "client alone, jobs.list_page", lambda: asyncio.run(list_alone(address, queue))
    )
    best(
        rows // 10,
        "source, job_id and state",
        lambda: on.read(queue, "job_id bigint, state string"),
    )
    best(
        rows // 10,
        "source, job_id and payload",
        lambda: on.read(queue, "job_id bigint, payload binary"),
    )
    best(rows // 10, "source, all columns", lambda: on.read(queue))
    for limit, what in ((0, "events, one micro-batch"), (200_000, "events, 200,000 a micro-batch")):
        with tempfile.TemporaryDirectory() as folder:
            on.stream(folder, 0)
            asyncio.run(push_alone(address, on.queue(), rows))
            best(rows, what, lambda folder=folder, limit=limit: on.stream(folder, limit), tries=1)


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
    rows = parser.parse_args().rows
    spark = launched("bench", master="local[2]", memory="2g").getOrCreate()
    register(spark)
    try:
        with served() as address:
            measure(spark, address, rows)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
