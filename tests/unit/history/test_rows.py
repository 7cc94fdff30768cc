"""What a `Rows` keeps of the ids that it is given, and how many follow each."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from jobline_server.history.columns import ids_of
from jobline_server.history.rows import Rows


@pytest.mark.parametrize("kind", [list, tuple, lambda counts: array("q", counts)])
@pytest.mark.parametrize("counts", [[1, 3], [255, 2], [256, 2], [1_000_000, 1]])
def test_runs_of_any_length_are_kept_whatever_holds_them(kind, counts):
    rows = Rows(0, {}, array("q", [10, 5]), kind(counts))
    assert (rows.total, rows.counts.tolist()) == (sum(counts), counts)


def test_ids_of_single_jobs_and_of_runs_are_gathered_as_runs():
    rows = [Rows(0, {}, [7, 3]), Rows(0, {}, [20], [300]), Rows(0, {}), Rows(0, {}, [1], [2])]
    starts, counts = ids_of(rows)
    assert (starts.tolist(), counts.tolist()) == ([7, 3, 20, 1], [1, 1, 300, 2])
    assert counts.dtype == np.int64


def test_single_jobs_have_no_counts():
    starts, counts = ids_of([Rows(0, {}, [7, 3], [1, 1]), Rows(0, {}, [5])])
    assert (starts.tolist(), counts) == ([7, 3, 5], None)
