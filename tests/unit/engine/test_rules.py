"""Rules of jobs, and the needs that follow from them."""

from __future__ import annotations

from jobline_server.engine.rules import NO_RULES, DeliveryMode, JobRules, Needs


def test_jobs_without_a_limiter_or_a_version_need_nothing():
    """Their lanes are those of all other jobs."""
    assert NO_RULES.needs is None
    assert JobRules(tags=("a",)).needs is None


def test_needs_are_the_limiters_and_the_oldest_version():
    """Equal needs are one lane."""
    assert JobRules(limiters=("smtp",)).needs == Needs(limiters=("smtp",))
    assert JobRules(tags=("a",), min_worker_version="1.2").needs == Needs("1.2")


def test_jobs_that_take_several_places_have_lanes_of_their_own():
    """So do those that go out once: a lease knows by its lanes whether to look."""
    assert JobRules(slots=1).needs is None
    assert JobRules(slots=3).needs == Needs(slots=3)
    assert JobRules(delivery_mode=DeliveryMode.AT_LEAST_ONCE).needs is None
    assert JobRules(delivery_mode=DeliveryMode.ONCE).needs == Needs(is_once=True)
