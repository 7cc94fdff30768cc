"""Writes rows to a queue; as a program, a driver that tests kill.

python driver.py ADDRESS ROWS KEY=VALUE…   (options of the write; `stream=DIRECTORY` streams them)
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from jobline_pipeline.session import launched
from jobline_pipeline.source import register

PARTS = 8


def write(spark: SparkSession, address: str, rows: int, options: dict[str, str]) -> None:
    """Writes numbers, or streams those of the files in `stream`, which have them."""
    given = {**options, "address": address}
    folder = given.pop("stream", "")
    if not folder:
        frame = payloads(spark.range(rows, numPartitions=PARTS))
        frame.write.format("jobline").options(**given).mode("append").save()
        return
    source = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1)
    frame = payloads(source.parquet(str(Path(folder) / "in")))
    writer = frame.writeStream.format("jobline").options(**given)
    writer = writer.option("checkpointLocation", str(Path(folder) / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def payloads(frame: DataFrame) -> DataFrame:
    """Returns the rows with a payload and a key."""
    text = sf.col("id").cast("string")
    return frame.select(text.alias("payload"), text.alias("key"))


if __name__ == "__main__":
    target, count, *words = sys.argv[1:]
    session = launched("driver", master="local[2]", memory="512m", short=True).getOrCreate()
    register(session)
    write(session, target, int(count), dict(word.split("=", 1) for word in words))
