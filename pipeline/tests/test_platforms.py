"""The same commands where a platform starts Spark: spark-submit, Spark Connect, the Spark operator.

What is run is what docs/pipeline.md shows, with directories of the test in the place of buckets.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest
import yaml
from typer.testing import CliRunner

from jobline_pipeline.cli import build
from jobline_pipeline.jars import COORDINATES, installed_jars
from jobline_pipeline.java import find_java, java_cache
from jobline_pipeline.session import DELTA
from tests.running import contents

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
MANIFEST = ROOT / "deploy" / "spark" / "jobline-pipeline.yaml"
SECONDS = 600
# The tests' machine may be stopped for minutes; the rest is what makes a small one quick.
SMALL = [
    "--driver-memory", "1g", "--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2",
    "--conf", "spark.network.timeout=24h", "--conf", "spark.ui.enabled=false",
    "--conf", "spark.driver.host=127.0.0.1",
]  # fmt: skip
# Objectives are not given to these runs.
WITHOUT = ("files", "slo")


def shown(program):
    """Returns the words that follow a program in the document, with our jars for `--packages`."""
    text = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    [found] = re.findall(rf"^{re.escape(program)} (.*?)^```", text, re.DOTALL | re.MULTILINE)
    words = shlex.split(found.replace("\\\n", " "))
    at = words.index("--packages")
    assert words[at + 1] == COORDINATES[0]
    words[at : at + 2] = ["--jars", ",".join(map(str, installed_jars()))]
    return words


def environment(**more):
    path = f"{PROGRAMS}:{os.environ['PATH']}"
    home = str(find_java(java_cache()))
    return {**os.environ, "PATH": path, "JAVA_HOME": home, **more}


def command(*words, **more):
    """Runs a command line; returns what it printed, on stdout and on stderr."""
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, timeout=SECONDS, cwd=ROOT,
        env=environment(**more), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


@pytest.mark.fault
@pytest.mark.timeout(SECONDS)
def test_spark_submit_runs_the_commands(spark, history, made, tmp_path, expected):
    """As the document shows it; its tables are those of a run in one process."""
    words = shown("spark-submit")
    assert words[-3:] == ["s3a://bucket/history", "--tables", "s3a://bucket/tables"]
    words[-3:] = [str(history), "--tables", str(tmp_path)]
    # It passes on what Python says on stderr as stdout.
    said, _ = command(PROGRAMS / "spark-submit", *SMALL, *words)
    assert f"batch 0: {made[1][0].rows:,} events of 12 files" in said
    assert " INFO " not in said.partition("batch 0:")[2]
    assert contents(spark, tmp_path, without=WITHOUT) == without(expected)


def without(tables):
    return {name: rows for name, rows in tables.items() if name not in WITHOUT}


@pytest.fixture(scope="module")
def connect(tmp_path_factory):
    """The address of a server of Spark Connect, started as the document shows it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [
        PROGRAMS / "spark-submit", "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer", *SMALL,
        "--conf", f"spark.connect.grpc.binding.port={port}", *shown("start-connect-server.sh"),
        "spark-internal",
    ]  # fmt: skip
    log = tmp_path_factory.mktemp("connect") / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*map(str, words)], stdout=out, stderr=out, env=environment(), start_new_session=True
        )
    try:
        _wait_for(server, port, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(10)


def _wait_for(server, port, log):
    until = time.monotonic() + SECONDS / 2
    while True:
        assert server.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < until, log.read_text()[-3000:]
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return


@pytest.mark.fault
@pytest.mark.timeout(SECONDS)
def test_spark_connect_runs_the_commands(spark, connect, history, made, tmp_path, expected):
    """`run` twice, `sql` and `report`: the same tables and the same answers, and no warning."""
    pipeline, tables = PROGRAMS / "jobline-pipeline", tmp_path / "tables"
    said = [
        command(pipeline, "run", history, "--tables", tables, "--json", SPARK_REMOTE=connect)[0]
        for _ in range(2)
    ]
    batches = [json.loads(line) for line in said[0].splitlines()]
    counts = {"taken": 12, "repeated": 0, "bad": 0, "rows": made[1][0].rows, "rows_apart": 0}
    assert batches == [{"batch": 0, **counts}]
    assert said[1] == ""
    assert contents(spark, tables, without=WITHOUT) == without(expected)

    count = "SELECT count(*) AS jobs FROM jobs"
    answer, warned = command(
        pipeline, "sql", count, "--tables", tables, "--json", SPARK_REMOTE=connect
    )
    assert json.loads(answer) == {"jobs": len(expected["jobs"])}
    assert "Warning" not in warned
    there, here = (
        json.loads(command(pipeline, "report", "--tables", tables, "--json", **remote)[0])
        for remote in ({"SPARK_REMOTE": connect}, {})
    )
    # Merged sketches draw lots: each time a quantile is another one, within its error of rank.
    for queue in (*here["queues"], *there["queues"]):
        for name in [name for name in queue if re.search(r"_p\d\d_ms$", name)]:
            assert queue.pop(name) > 0
    assert there == here


def test_the_operator_starts_a_command_that_there_is():
    """With the versions, the file and the settings that this tree has."""
    manifest = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    spec = manifest["spec"]
    assert spec["sparkVersion"] == pyspark.__version__
    assert (MANIFEST.parent / Path(spec["mainApplicationFile"]).name).is_file()
    assert spec["sparkConf"].items() >= DELTA.items()
    name, *words = spec["arguments"]
    help_of_it = CliRunner().invoke(build(), [name, "--help"], env={"COLUMNS": "200"})
    assert help_of_it.exit_code == 0
    assert all(word in help_of_it.output for word in words if word.startswith("--"))
