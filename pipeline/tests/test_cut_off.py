"""A run that is cut off anywhere, and run again, ends with the same tables."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from pyspark.errors import StreamingQueryException

from tests.running import contents, run

# A stream whose driver dies by SIGKILL in the middle of its second batch.
DRIVER = textwrap.dedent("""
    import os, signal, sys
    from jobline_pipeline.session import open_session
    from tests.conftest import OPTIONS
    from tests.running import run
    steps = []
    def tell(step):
        steps.append(step)
        if steps.count("open jobs") == 2 and step == sys.argv[3]:
            os.kill(os.getpid(), signal.SIGKILL)
    spark = open_session("driver", master="local[2]", memory="1g", options=OPTIONS)
    run(spark, sys.argv[1], sys.argv[2], files_a_batch=6, every="1 second", tell=tell)
""")


class Cut(Exception):
    """Stands for whatever ends a driver."""


@pytest.mark.parametrize("at", ["open jobs", "queue_minutes"])
def test_cut_off_run_is_taken_up(spark, history, tmp_path, expected, at):
    """The step has ended, or is about to begin; what was written is not written twice."""

    def cut(step):
        if step == at:
            raise Cut

    with pytest.raises(StreamingQueryException):
        run(spark, history, tmp_path, tell=cut)
    run(spark, history, tmp_path)
    assert contents(spark, tmp_path) == expected


def test_killed_driver_is_taken_up(spark, history, tmp_path, expected):
    """A real process, killed while it writes gold tables of its second batch."""
    driver = subprocess.run(
        [sys.executable, "-c", DRIVER, str(history), str(tmp_path), "versions"],
        capture_output=True,
        text=True,
        timeout=300,
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
