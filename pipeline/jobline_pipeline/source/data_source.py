"""What Spark asks for by the name `jobline`: readers and writers, with their options checked."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source.conversions import EVENTS, JOBS, arrow_schema
from jobline_pipeline.source.events_reader import EventsReader
from jobline_pipeline.source.jobs_reader import JobsReader
from jobline_pipeline.source.lots import Rows
from jobline_pipeline.source.options import (
    are_events,
    events_wanted,
    jobs_wanted,
    server_of,
    writing,
)
from jobline_pipeline.source.writers import BatchWriter, MicroBatchWriter


def register(spark: SparkSession) -> None:
    """Makes the format `jobline` known to a session."""
    spark.dataSource.register(JoblineSource)


class JoblineSource(DataSource):
    """Reads and writes jobs, and streams events.

    Spark asks for the columns before it says whether it streams, so a stream names its events:
    `option("events", "all")`. A frame may be given fewer columns by `.schema(…)`; the others are
    not read.
    """

    @classmethod
    def name(cls) -> str:
        """Returns the name of the format."""
        return "jobline"

    def schema(self) -> StructType:
        """Returns all columns of jobs, or of events."""
        return EVENTS if are_events(self.options) else JOBS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns a reader of jobs. Raises PipelineError."""
        wanted = jobs_wanted(self.options)
        return JobsReader(server_of(self.options), wanted, arrow_schema(schema, JOBS, "jobs"))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Returns a reader of events. Raises PipelineError."""
        if schema == JOBS:
            raise PipelineError(
                'a stream is of events: give option("events", "all"), or some kinds'
            )
        wanted = events_wanted(self.options)
        return EventsReader(server_of(self.options), wanted, arrow_schema(schema, EVENTS, "events"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Returns a writer of rows as jobs. Raises PipelineError."""
        if overwrite:
            raise PipelineError('a queue is only added to: give mode("append")')
        how = writing(self.options)
        return BatchWriter(server_of(self.options), how, Rows.of(schema, how))

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Returns a writer of a micro-batch as jobs. Raises PipelineError."""
        if overwrite:
            raise PipelineError('a queue is only added to: give outputMode("append")')
        how = writing(self.options, method="writeStream")
        return MicroBatchWriter(server_of(self.options), how, Rows.of(schema, how))
