"""What the client returns as plain values, and texts that are safe to print."""

from __future__ import annotations

import json

from jobline import Job
from jobline._printable import printable
from jobline.cli.as_json import plain, text_of
from jobline.v1 import job_pb2


def test_ids_are_numbers_and_enums_bare_names():
    message = job_pb2.Job(id=1 << 52, state=job_pb2.JOB_STATE_READY, payload=b'{"a":1}')
    shown = plain(Job.from_message(message))
    assert shown["id"] == 1 << 52
    assert shown["state"] == "READY"
    assert shown["payload"] == '{"a":1}'
    json.dumps(shown)


def test_unset_things_are_null_or_left_out():
    shown = plain(Job.from_message(job_pb2.Job()))
    assert shown["reason"] is None
    assert "ended_at" not in shown
    assert shown["history"] == []
    assert shown["options"] == {"name": "", "content_type": "", "headers": {}}


def test_times_are_iso_and_seconds():
    job = job_pb2.Job()
    job.pushed_at.FromJsonString("2026-01-31T18:00:00Z")
    job.options.lease.FromMilliseconds(1_500)
    job.options.headers["b"] = "2"
    job.options.headers["a"] = "1"
    shown = plain(Job.from_message(job))
    assert shown["pushed_at"] == "2026-01-31T18:00:00Z"
    assert shown["options"]["lease"] == 1.5
    assert list(shown["options"]["headers"]) == ["a", "b"]


def test_bytes_that_are_no_text_are_base64():
    assert text_of(b"\xff") == {"base64": "/w=="}


def test_what_would_steer_a_terminal_is_made_visible():
    assert printable("a\x1b[31mb\x07\n\tä") == "a\ufffd[31mb\ufffd\n\tä"
