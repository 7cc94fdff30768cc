"""Holders and the wheel that looks at them."""

from __future__ import annotations

from jobline_server.engine.holder import Holder, LeaseWheel


def test_wheel_holds_a_holder_once_however_often_it_is_armed():
    """Two sessions that lease in turn do not fill the wheel."""
    wheel, one, two = LeaseWheel(), Holder("w1", "s1"), Holder("w2", "s2")
    for ms in range(5_000, 6_000, 10):
        wheel.arm(one, ms)
        wheel.arm(two, ms)
    assert sum(len(bucket) for bucket in wheel._buckets.values()) == 2
    assert wheel.due(6_000) == [one, two]
    assert wheel.due(60_000) == []


def test_wheel_keeps_nobody_alive():
    """A pull whose jobs are done leaves nothing behind but its place."""
    wheel, holder = LeaseWheel(), Holder("w1", "")
    wheel.arm(holder, 5_000)
    del holder
    assert wheel.due(6_000) == []


def test_holder_armed_for_an_earlier_second_is_looked_at_then_and_not_twice():
    """A shorter lease brings the check forward."""
    wheel, holder = LeaseWheel(), Holder("w1", "s1")
    wheel.arm(holder, 9_000)
    wheel.arm(holder, 5_000)
    assert wheel.next_deadline() == 6_000
    assert wheel.due(6_000) == [holder]
    wheel.arm(holder, 20_000)
    assert wheel.due(10_000) == []
    assert wheel.due(21_000) == [holder]
