"""Which fields of JobOptions are rules; options with none of them all share one object."""

from __future__ import annotations

import pytest
from google.protobuf import json_format

from jobline.v1 import job_pb2
from jobline_server.engine.rules import NO_RULES
from jobline_server.wire.options import options_from_message
from jobline_server.wire.rules import RULE_FIELDS, rules_from_message

ONE_OF_EACH = {
    "name": "resize",
    "content_type": "text/plain",
    "headers": {"a": "b"},
    "priority": 3,
    "lease": "5s",
    "max_attempts": 4,
    "backoff": {"kind": 1},
    "max_stalls": 2,
    "retention": {"count": 5},
    "group": "acme",
    "unique_key": "k",
    "depends_on": [7],
    "tags": ["new"],
    "phases": ["fetch"],
    "min_worker_version": "1.2",
    "limiters": ["smtp"],
    "cost": 2,
    "delivery": 2,
    "slots": 2,
    "lifo": True,
    "retry_until": "2030-01-01T00:00:00Z",
    "timeout": "5s",
    "ttl": "5s",
    "on_dead_head": 2,
    "unique_mode": 2,
    "unique_ttl": "5s",
    "unique_max_wait": "5s",
    "sticky": True,
    "on_dependency_failure": 2,
    "block_timeout": "5s",
    "webhook": "http://example.com/",
}
NOT_SERVED = {"batch_id"}


@pytest.mark.parametrize("field", sorted(job_pb2.JobOptions.DESCRIPTOR.fields_by_name))
def test_a_rule_is_read_wherever_it_is_set(field: str) -> None:
    """A new field that is a rule must be named as one, or its value would be lost."""
    if field in NOT_SERVED:
        return
    message = json_format.ParseDict({field: ONE_OF_EACH[field]}, job_pb2.JobOptions())

    assert options_from_message(message).rules == rules_from_message(message)
    assert (rules_from_message(message) is not NO_RULES) == (field in RULE_FIELDS)
