"""Names of fields in refusals of pushes."""

from __future__ import annotations

from operator import attrgetter

import pytest

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.push_fields import (
    depends_on_field,
    job_key_field,
    option_field,
    payload_field,
    unique_key_field,
)
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions, JobState
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine.dependents import child, settle
from tests.unit.engine.unique_jobs import Mode, new

OWN = JobOptions(priority=2)
PRIORITY = attrgetter("priority")


def pushed(*ties: Ties, shared: Ties = NO_TIES, options: JobOptions = DEFAULT_OPTIONS) -> Push:
    """Rows with these ties; the last one was sent in `payloads`."""
    rows = rows_of([NewJob(b"", OWN, ties=one) for one in ties])
    return Push("q", options, rows, listed=len(ties) - 1, shared_ties=shared)


def test_an_option_was_sent_by_the_job_or_shared_by_the_push() -> None:
    """Payloads have only what they share."""
    own, shared = pushed(NO_TIES, NO_TIES), pushed(NO_TIES, NO_TIES, options=OWN)
    assert option_field(own, 0, "priority", PRIORITY) == "jobs[0].options.priority"
    assert option_field(own, 1, "priority", PRIORITY) == "options.priority"
    assert option_field(shared, 0, "priority", PRIORITY) == "options.priority"


def test_a_unique_key_was_sent_by_the_job_in_a_column_or_shared() -> None:
    """Wherever it came from."""
    push = pushed(Ties(unique_key="u"), Ties(unique_key="s"), Ties(unique_key="v"))
    push.shared_ties = Ties(unique_key="s")
    places = ["jobs[0].options.unique_key", "options.unique_key", "unique_keys[0]"]
    assert [unique_key_field(push, index) for index in range(3)] == places


def test_ids_to_depend_on_are_the_jobs_own_or_shared() -> None:
    """A job without ties depends on nothing of its own."""
    shared = Ties(parents=(7,))
    push = pushed(Ties(parents=(7, 8)), shared, shared=shared)
    assert depends_on_field(push, 0) == "jobs[0].options.depends_on"
    assert depends_on_field(push, 1) == "options.depends_on"
    assert depends_on_field(pushed(NO_TIES), 0) == "options.depends_on"


def test_keys_and_payloads_stand_in_jobs_first() -> None:
    """Then beside each other in columns, whether they became rows or not."""
    push = pushed(NO_TIES, NO_TIES)
    assert [job_key_field(push, 0), job_key_field(push, 1)] == ["jobs[0].job_key", "job_keys[0]"]
    assert [payload_field(push, 0), payload_field(push, 1)] == ["jobs[0].payload", "payloads[0]"]


def test_an_unknown_id_is_named_where_it_was_sent(world) -> None:
    with pytest.raises(Refused) as refused:
        world.push(jobs=[new(), child(99)], outcomes={99: None})
    assert refused.value.field == "jobs[1].options.depends_on"


def test_a_job_that_a_key_stands_for_and_is_gone_is_named_by_its_index(world) -> None:
    """Nobody named its id."""
    known = world.row(b"a", key="k")
    settle(world, "ack", known)
    jobs = [NewJob(b"a", DEFAULT_OPTIONS, "k"), child(7), child(indexes=[0])]
    with pytest.raises(Refused, match=f"no job {known},") as refused:
        world.push(jobs=jobs, outcomes={known: None, 7: JobState.COMPLETED})
    assert refused.value.kind is RefusalKind.JOB_NOT_FOUND
    assert refused.value.field == "jobs[2].depends_on_indexes"


def test_a_job_of_the_push_that_is_not_stored_is_named_by_its_index(world) -> None:
    world.row(b"a", key="k")
    jobs = [NewJob(b"other", DEFAULT_OPTIONS, "k"), new(), child(indexes=[0])]
    with pytest.raises(Refused) as refused:
        world.push(jobs=jobs, atomic=False)
    assert refused.value.field == "jobs[2].depends_on_indexes"


def test_a_limiter_is_named_where_it_was_sent(world) -> None:
    named = JobOptions(rules=JobRules(limiters=("nowhere",)))
    with pytest.raises(Refused) as refused:
        world.push(jobs=[NewJob(b"", DEFAULT_OPTIONS), NewJob(b"", named)])
    assert refused.value.field == "jobs[1].options.limiters"
    with pytest.raises(Refused) as refused:
        world.push(payloads=[b""], options=named, shared_options=DEFAULT_OPTIONS, listed=1)
    assert refused.value.field == "jobs[0].options.limiters"


def test_the_mode_of_a_queue_lacks_the_ttl_of_the_push(world) -> None:
    """The job said nothing."""
    world.settings(unique_mode=Mode.THROTTLE)
    with pytest.raises(Refused, match="needs a unique_ttl") as refused:
        world.push(jobs=[new()])
    assert refused.value.field == "options.unique_ttl"
