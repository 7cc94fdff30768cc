"""The Spark data source `jobline`: the queue itself as frames.

    register(spark)
    spark.read.format("jobline").option("queues", "mail").option("states", "dead").load()
    spark.readStream.format("jobline").load()
    frame.write.format("jobline").option("queue", "mail").mode("append").save()

| module | |
|---|---|
| `data_source` | what Spark asks for: readers and writers, with their options checked |
| `options` | every option with its default; refuses unknown ones |
| `conversions` | the columns of jobs and events; events to Arrow, rows to payloads and jobs |
| `jobs_reader`, `job_rows` | batches of jobs, the queues of a shard a partition; jobs to Arrow |
| `events_reader`, `watching`, `positions` | events since a position, and what a position is |
| `writers`, `lots`, `pushing` | rows become lots of jobs, a task has one client |
| `held` | lots that nobody gets before the whole frame is written |

The address is read where the frame is made; tasks open their own connections. Nothing here knows
tables, files or Delta.
"""

from jobline_pipeline.source.data_source import JoblineSource, register

__all__ = ["JoblineSource", "register"]
