"""The jars of Delta Lake: fetched once, when the pipeline is installed; nothing is fetched later.

    python -m jobline_pipeline.jars

asks Spark's own resolver for them (Maven Central, or what `ivysettings.xml` says) and puts them
beside this package, or into the directory that JOBLINE_PIPELINE_JARS names.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException

from jobline_pipeline.problems import PipelineError

COORDINATES = ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0")


def jar_directory() -> Path:
    """Returns where the jars are, or will be."""
    named = os.environ.get("JOBLINE_PIPELINE_JARS")
    return Path(named) if named else Path(__file__).with_name("jars")


def installed_jars() -> list[Path]:
    """Returns the jars to start Spark with; raises PipelineError if they were never fetched."""
    directory = jar_directory()
    jars = [directory / _file_name(coordinate) for coordinate in COORDINATES]
    missing = [jar.name for jar in jars if not jar.is_file()]
    if missing:
        raise PipelineError(
            f"{', '.join(missing)} not in {directory}. Fetch the jars of Delta Lake once, with: "
            "python -m jobline_pipeline.jars"
        )
    return jars


def fetch_jars() -> Path:
    """Fetches the jars if they are not there yet; returns their directory."""
    directory = jar_directory()
    wanted = [_file_name(coordinate) for coordinate in COORDINATES]
    if all((directory / name).is_file() for name in wanted):
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as ivy:
        _resolve(ivy)
        found = {_plain_name(jar.name): jar for jar in Path(ivy).rglob("*.jar")}
        for name in wanted:
            if name not in found:
                raise PipelineError(f"{name} could not be fetched from Maven Central.")
            temporary = directory / f"{name}.{os.getpid()}"
            shutil.copyfile(found[name], temporary)
            temporary.replace(directory / name)
    return directory


def _resolve(ivy: str) -> None:
    """Has a short session of Spark resolve the coordinates into the directory `ivy`."""
    from jobline_pipeline.session import launched  # noqa: PLC0415 - it imports this module

    builder = launched("jars", master="local[1]", memory="512m").config("spark.jars.ivy", ivy)
    try:
        with _unheard():
            spark = builder.getOrCreate()
        try:
            for coordinate in COORDINATES:
                # The jar and nothing that its descriptor names: Spark brings the rest.
                spark.sql(f"ADD JAR ivy://{coordinate}?transitive=false")
        finally:
            spark.stop()
    except PySparkException as error:
        raise PipelineError(f"The jars could not be fetched: {error}") from error


@contextmanager
def _unheard() -> Iterator[None]:
    """Lets a process that is started meanwhile print nothing: the resolver tells of each step. What
    fails is raised, with its reason.
    """
    sys.stdout.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, saved in kept.items():
            os.dup2(saved, number)
            os.close(saved)
        os.close(nowhere)


def _file_name(coordinate: str) -> str:
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def _plain_name(name: str) -> str:
    """Ivy writes the group before the artifact: io.delta_delta-storage-4.4.0.jar."""
    return name.partition("io.delta_")[2] or name


if __name__ == "__main__":
    try:
        print("Delta Lake is in", fetch_jars())
    except PipelineError as problem:
        sys.exit(f"jobline-pipeline: {problem}")
