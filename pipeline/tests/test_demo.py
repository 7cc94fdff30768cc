"""The demo tells right from wrong, and its jobs fail as often as it says: without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo.counted import Difference, Totals, differences
from demo.shop import KINDS, VERSIONS, fate_of

MAIL = Totals(pushed=10, completed=8, failed=3, dead=1, cancelled=0, open=1)
JOBS = range(1, 4001)


def test_equal_totals_do_not_differ():
    """Whatever the order of the queues."""
    assert differences({"mail": MAIL, "a": MAIL}, {"a": MAIL, "mail": MAIL}) == []


def test_a_total_that_differs_is_named():
    """With both numbers."""
    found = differences({"mail": MAIL}, {"mail": replace(MAIL, completed=7)})
    assert found == [Difference("mail", "completed", 8, 7)]


def test_a_queue_that_one_side_lacks_differs():
    """In each total that is not zero."""
    lost = [each.what for each in differences({"mail": MAIL}, {})]
    assert lost == ["pushed", "completed", "failed", "dead", "open"]
    assert len(differences({}, {"mail": MAIL})) == len(lost)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_attempts_fail_and_last_as_declared(kind):
    """And the same attempt always has the same fate."""
    fates = [fate_of(kind, VERSIONS[0], job_id=job, attempt=1, is_down=False) for job in JOBS]
    failed = sum(fate.error is not None for fate in fates)
    assert abs(failed / len(JOBS) - kind.failing) < 0.01
    median = sorted(fate.seconds for fate in fates)[len(fates) // 2]
    assert median * 1_000 == pytest.approx(kind.run_ms, rel=0.1)
    again = fate_of(kind, VERSIONS[0], job_id=7, attempt=1, is_down=False)
    assert again.seconds == fates[6].seconds


def test_the_second_version_breaks_two_kinds():
    """One fails, one is slow; the others are as before."""
    changed = {}
    for kind in KINDS:
        old, new = (
            [fate_of(kind, version, job_id=job, attempt=1, is_down=False) for job in JOBS]
            for version in VERSIONS
        )
        failures = [sum(fate.error is not None for fate in fates) for fates in (old, new)]
        slower = sum(fate.seconds for fate in new) / sum(fate.seconds for fate in old)
        if failures[1] > failures[0] * 5 or slower > 2:
            changed[kind.name] = failures[1] > failures[0] * 5
    assert changed == {"mail.receipt": True, "image.resize": False}
