"""A run that is cut off anywhere, and run again, ends with the same tables."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from pyspark.errors import StreamingQueryException

from jobline_pipeline.store import Store
from jobline_pipeline.upkeep import optimize
from tests.running import contents, run

# A driver that dies by SIGKILL in its second batch: when a step is told, or when the first file of
# a table's write is there, which no commit has made part of the table yet.
DRIVER = textwrap.dedent("""
    import os, signal, sys, threading
    from pathlib import Path
    from jobline_pipeline.session import open_session
    from tests.conftest import OPTIONS
    from tests.running import run
    history, root, every, step, table = sys.argv[1:]
    steps = []
    def die():
        os.kill(os.getpid(), signal.SIGKILL)
    def files():
        return {path for path in Path(root, table).rglob("*.parquet")}
    def watch(known):
        while not files() - known:
            pass
        die()
    def tell(what):
        steps.append(what)
        second = sum(each.startswith("looking at") for each in steps) == 2
        if second and table and what.startswith("looking at"):
            threading.Thread(target=watch, args=(files(),), daemon=True).start()
        if second and what == step:
            die()
    spark = open_session("driver", master="local[2]", memory="1g", options=OPTIONS)
    run(spark, history, root, files_a_batch=6, every=every or None, tell=tell)
""")


class Cut(Exception):
    """Stands for whatever ends a driver."""


@pytest.mark.parametrize(
    "at", [pytest.param("open_jobs", marks=pytest.mark.fault), "queue_minutes"]
)
def test_cut_off_run_is_taken_up(spark, history, tmp_path, expected, at):
    """The step has ended, or is about to begin; what was written is not written twice."""

    def cut(step):
        if step == at:
            raise Cut

    with pytest.raises(StreamingQueryException):
        run(spark, history, tmp_path, tell=cut)
    run(spark, history, tmp_path)
    assert contents(spark, tmp_path) == expected


@pytest.mark.fault
@pytest.mark.timeout(900)
def test_cut_off_run_finds_rows_whose_files_were_joined(spark, history, tmp_path, expected):
    """Somebody ran `optimize` in between: the exported files are read again."""

    def cut(step):
        if step == "attempts and jobs":
            raise Cut

    with pytest.raises(StreamingQueryException):
        run(spark, history, tmp_path, tell=cut)
    [(name, before, after)] = optimize(Store(spark, str(tmp_path)), lambda _: None)
    assert (name, before > after) == ("events", True)
    run(spark, history, tmp_path)
    assert contents(spark, tmp_path) == expected


@pytest.mark.fault
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("every", "step", "table"),
    [
        pytest.param("", "", "bronze/events", id="a batch, while it writes events"),
        pytest.param("", "", "gold/queue_minutes", id="a batch, while it writes a gold table"),
        pytest.param("1 second", "versions", "", id="a stream, between gold tables"),
    ],
)
def test_killed_driver_is_taken_up(spark, history, tmp_path, expected, every, step, table):
    """A real process, killed in its second batch; a second run ends with the same tables."""
    driver = subprocess.run(
        [sys.executable, "-c", DRIVER, str(history), str(tmp_path), every, step, table],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert driver.returncode == -9, driver.stderr[-2000:]
    run(spark, history, tmp_path, files_a_batch=6)
    assert contents(spark, tmp_path) == expected


def test_lost_checkpoint_repeats_nothing(spark, history, made, expected):
    """The ledger knows the files that the stream has forgotten."""
    (made[0] / "_checkpoint").rename(made[0] / "_lost")
    counts = run(spark, history, made[0])
    assert [(c.taken, c.repeated) for c in counts] == [(0, 12)]
    assert contents(spark, made[0]) == expected
