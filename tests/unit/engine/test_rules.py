"""Rules of jobs, and the needs that follow from them."""

from __future__ import annotations

from jobline_server.engine.rules import NO_RULES, JobRules, Needs


def test_jobs_without_a_limiter_or_a_version_need_nothing():
    """Their lanes are those of all other jobs."""
    assert NO_RULES.needs is None
    assert JobRules(tags=("a",)).needs is None


def test_needs_are_the_limiters_and_the_oldest_version():
    """Equal needs are one lane."""
    assert JobRules(limiters=("smtp",)).needs == Needs(limiters=("smtp",))
    assert JobRules(tags=("a",), min_worker_version="1.2").needs == Needs("1.2")
