"""The list of facts is complete, and what is not written stands at the end of a fact."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from jobline_server.engine import (
    batch_entries,
    blocked_entries,
    entries,
    group_entries,
    limiter_entries,
    message_entries,
    operation_entries,
    queue_entries,
    report_entries,
    schedule_entries,
    server_entries,
    unique_entries,
    update_entries,
    webhook_entries,
)

MODULES = (
    batch_entries,
    blocked_entries,
    entries,
    group_entries,
    limiter_entries,
    message_entries,
    operation_entries,
    queue_entries,
    report_entries,
    schedule_entries,
    server_entries,
    unique_entries,
    update_entries,
    webhook_entries,
)
FACTS = typing.get_args(entries.Fact)


def test_every_record_of_these_modules_is_a_fact():
    """Who knows the list knows the system."""
    defined = {
        one
        for module in MODULES
        for one in vars(module).values()
        if dataclasses.is_dataclass(one) and one.__module__ == module.__name__
    }
    assert defined == {*FACTS}


@pytest.mark.parametrize("fact", FACTS)
def test_fact_begins_with_its_moment_and_says_what_happened(fact):
    assert dataclasses.fields(fact)[0].name == "at_ms"
    assert fact.__doc__
    assert fact.__doc__.strip().endswith(".")


@pytest.mark.parametrize("name", ["holder", "volatile"])
def test_what_is_not_written_comes_last_and_can_be_left_out(name):
    """A recovered fact does without."""
    having = [fact for fact in FACTS if name in {one.name for one in dataclasses.fields(fact)}]
    assert having
    for fact in having:
        last = dataclasses.fields(fact)[-1]
        assert last.name == name
        assert last.default is not dataclasses.MISSING
