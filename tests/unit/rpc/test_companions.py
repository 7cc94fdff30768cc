"""Options that mean nothing without another one; bad_input.yaml has those that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.commands import Refused
from jobline_server.rpc.convert.push import PushReader
from tests.unit.rpc.test_push import reader, request

__all__ = ["reader"]

REPLACE, DEBOUNCE = "UNIQUE_MODE_REPLACE", "UNIQUE_MODE_DEBOUNCE"
SECOND = {"seconds": 1}

ACCEPTED: dict[str, dict[str, Any]] = {
    "the key of a job for a shared mode": {
        "options": {"unique_mode": REPLACE},
        "jobs": [{"options": {"unique_key": "u"}}],
    },
    "a shared key for the mode of a job": {
        "options": {"unique_key": "u"},
        "jobs": [{"options": {"unique_mode": REPLACE}}],
    },
    "keys in a column, one of them": {
        "options": {"unique_mode": REPLACE, "unique_ttl": SECOND},
        "payloads": [b"", b""],
        "unique_keys": ["", "u"],
    },
    "groups in a column, one of them": {
        "options": {"on_dead_head": "ON_DEAD_HEAD_HOLD"},
        "payloads": [b"", b""],
        "groups": ["g", ""],
    },
    "a shared mode for one job with a key beside payloads without": {
        "options": {"unique_mode": REPLACE},
        "jobs": [{"options": {"unique_key": "u"}}],
        "payloads": [b""],
    },
    "what becomes of a job that may add children": {
        "options": {"block_timeout": SECOND},
        "jobs": [{"options": {"on_dependency_failure": "DEPENDENCY_POLICY_CANCEL"}}],
        "payloads": [b""],
    },
    "the delay of a push for DEBOUNCE": {
        "options": {"unique_mode": DEBOUNCE, "unique_max_wait": SECOND, "unique_key": "u"},
        "payloads": [b""],
        "delay": SECOND,
    },
    "the delay of a job for DEBOUNCE": {
        "options": {"unique_key": "u"},
        "jobs": [{"delay": SECOND, "options": {"unique_mode": DEBOUNCE}}],
    },
    "a start that has passed for DEBOUNCE": {
        "options": {"unique_mode": DEBOUNCE, "unique_key": "u"},
        "payloads": [b""],
        "run_at": SECOND,
    },
    "a spread for DEBOUNCE": {
        "options": {"unique_mode": DEBOUNCE, "unique_key": "u"},
        "payloads": [b""],
        "spread": SECOND,
    },
    "a max_wait for the DEBOUNCE of a queue": {
        "options": {"unique_max_wait": SECOND, "unique_key": "u"},
        "payloads": [b""],
    },
}


@pytest.mark.parametrize("push", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_companion_may_come_from_anywhere(reader: PushReader, push: dict[str, Any]) -> None:
    """From the job, what the push shares, a column; or from the queue, whose settings are not known
    here.
    """
    command = reader.command(request(**push))
    pushed = [*push.get("jobs", []), *push.get("payloads", [])]
    assert len(command.rows) + len(command.payloads) == len(pushed)


def test_a_sticky_job_needs_a_group_in_each_job(reader: PushReader) -> None:
    """Shared or not."""
    jobs = [{"text": "a", "options": {"group": "g"}}]
    with pytest.raises(Refused, match="needs a group") as refused:
        reader.command(request(options={"sticky": True}, jobs=jobs, payloads=[b""]))
    assert refused.value.field == "options.sticky"
