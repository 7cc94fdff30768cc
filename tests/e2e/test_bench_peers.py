"""One row of the comparison with peers, measured: Jobline's own, as it needs nothing else."""

from __future__ import annotations

import os
import shutil

import pytest

from benchmarks.peers import jobline
from benchmarks.peers.measuring import Measuring, Scale
from benchmarks.peers.peer import Load, Row
from benchmarks.processes import LOAD_CORE, SERVER_CORE

TINY = Scale(seconds=0.1, repeats=1, share=0.005)


@pytest.mark.skipif(
    not {SERVER_CORE, LOAD_CORE} <= os.sched_getaffinity(0), reason="it needs two cores"
)
def test_row_of_jobline_is_measured_and_seen_to_sync(tmp_path):
    """All four loads, each counted on the server; and strace agrees with what the row promises."""
    said: list[str] = []
    setup = next(one for one in jobline.PEER.setups if one.key == "jobline-native-python")
    row = Row.of(setup)
    Measuring(tmp_path, TINY, said.append).measure(setup, row)
    assert set(row.rates) == set(Load)
    assert all(rate > 0 for rate in row.rates.values())
    assert len(said) == len(Load) + 1
    if shutil.which("strace"):
        assert row.is_synced
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
