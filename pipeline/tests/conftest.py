"""One session of Spark for all tests, and a small history that all of them may read."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from jobline_pipeline.report.answers import collect
from jobline_pipeline.session import open_session
from jobline_pipeline.simulate.load import Load
from jobline_pipeline.simulate.run import write_shard
from jobline_pipeline.store import Store
from tests import rows as typed
from tests.running import contents, run

START = datetime(2026, 11, 2, 9, tzinfo=UTC)
# All small: what is slow is the compiling, so it compiles once and quickly.
OPTIONS = {
    "spark.sql.shuffle.partitions": "2",
    # Without the second compiler Java keeps only 48 MB for code, which all tests together fill;
    # what comes then is never compiled.
    "spark.driver.extraJavaOptions": (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
        "-XX:MetaspaceSize=256m -Xss4m"
    ),
    "spark.sql.streaming.pollingDelay": "20ms",
}


@pytest.fixture(scope="session")
def spark():
    session = open_session("tests", master="local[2]", memory="1g", options=OPTIONS)
    yield session
    session.stop()


@pytest.fixture
def frame(spark):
    """Makes a DataFrame of a schema from dictionaries; what they leave out is NULL."""
    return lambda schema, given: typed.frame(spark, schema, given)


@pytest.fixture(scope="session")
def load():
    return Load(jobs=2000, hours=3, start_us=int(START.timestamp()) * 1_000_000, seed=11)


@pytest.fixture(scope="session")
def history(tmp_path_factory, load):
    """A simulated history of 2,000 jobs in three hours."""
    path = tmp_path_factory.mktemp("history")
    for shard in range(4):
        write_shard(path, load, shard)
    return path


@pytest.fixture(scope="session")
def made(spark, history, tmp_path_factory):
    """The tables of that history, made in one batch that nothing disturbed: root and counts."""
    root = tmp_path_factory.mktemp("made")
    return root, run(spark, history, root)


@pytest.fixture(scope="session")
def expected(spark, made):
    """What the tables hold."""
    return contents(spark, made[0])


@pytest.fixture(scope="session")
def answers(spark, made):
    """What a report says of them."""
    return collect(Store(spark, str(made[0])), lambda _: None)


@pytest.fixture(autouse=True)
def _utc():
    assert os.environ.get("TZ", "UTC") in {"UTC", ""}, (
        "the tests compare naive times of Spark: TZ=UTC"
    )
