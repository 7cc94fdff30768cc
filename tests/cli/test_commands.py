"""The commands against a real server: what they print, what they change, how they end."""

from __future__ import annotations

import json
from unittest.mock import ANY

import pytest

from jobline.cli import jobs
from jobline.cli.exit_codes import Exit
from tests.cli.conftest import NO_JOB


def push(jobline, queue, *arguments, **more):
    return jobline("push", queue, *arguments, "--json", **more).document["id"]


def test_pushed_job_is_shown_with_all_it_was_given(jobline, queue):
    options = ["--name", "welcome", "--priority", 7, "--delay", "1h", "-H", "tenant=acme"]
    pushed = jobline("push", queue, '{"to":"a@b.c"}', *options, "--key", "k-1", "--json")
    assert pushed.document | {"id": 0} == {"id": 0, "outcome": "CREATED", "ack_level": "FSYNCED"}
    job = jobline("job", "get", pushed.document["id"], "--json").document
    assert job["state"] == "SCHEDULED"
    assert job["payload"] == '{"to":"a@b.c"}'
    assert job["options"]["content_type"] == "application/json"
    assert (job["options"]["name"], job["options"]["priority"]) == ("welcome", 7)
    assert job["options"]["headers"] == {"tenant": "acme"}
    assert jobline("job", "get", queue, "k-1", "--json").document["id"] == job["id"]
    shown = jobline("job", "get", job["id"]).out
    assert "welcome" in shown
    assert "tenant=acme" in shown


def test_phases_of_a_job_are_shown_in_their_order(jobline, queue):
    pushed = push(jobline, queue, "{}", "--phase", "parse", "--phase", "load")
    shown = jobline("job", "get", pushed).out
    assert shown.rindex("parse") < shown.rindex("load")
    phases = jobline("job", "get", pushed, "--json").document["phases"]
    assert [(phase["name"], phase["state"]) for phase in phases] == [
        ("parse", "PENDING"),
        ("load", "PENDING"),
    ]


def test_log_of_a_job_is_printed_and_followed_to_its_end(jobline, queue):
    pushed = push(jobline, queue, "{}", "--tag", "eu")
    work = "import sys, os; print('hello')"
    jobline("work", queue, "--exit-when-idle", "0.3s", "--", "python", "-c", work)
    shown = jobline("job", "logs", pushed, "--follow", "--level", "info")
    assert (shown.code, shown.out) == (Exit.OK, "")
    assert jobline("job", "logs", pushed, "--level", "loud").code == Exit.USAGE
    assert jobline("job", "logs", NO_JOB).code == Exit.NOT_FOUND
    assert "eu" in jobline("job", "get", pushed).out


def test_key_makes_a_second_push_a_duplicate(jobline, queue):
    first = push(jobline, queue, "a", "--key", "k")
    again = jobline("push", queue, "a", "--key", "k", "--json").document
    assert (again["id"], again["outcome"]) == (first, "DUPLICATE")
    refused = jobline("push", queue, "b", "--key", "k")
    assert refused.code == Exit.REFUSED
    assert "another payload" in refused.err


def test_payload_comes_from_a_pipe_or_a_file(jobline, queue, tmp_path):
    (tmp_path / "payload").write_bytes(b"from a file")
    piped = push(jobline, queue, stdin=b"from a pipe")
    filed = push(jobline, queue, "--file", tmp_path / "payload")
    listed = jobline("job", "ls", f"queue:{queue}", "--payloads", "--json").lines
    assert {job["id"]: job["payload"] for job in listed} == {
        piped: "from a pipe",
        filed: "from a file",
    }


def test_each_line_becomes_a_job(jobline, queue):
    lines = b"".join(b'{"n":%d}\n' % number for number in range(2_500))
    assert "2,500 jobs" in jobline("push", queue, "--lines", stdin=lines).out
    counts = jobline("queue", "get", queue, "--json").document["counts"]
    assert counts["ready"] == 2_500


def test_lines_with_a_key_are_pushed_once(jobline, queue):
    lines = b"a\nb\nc\n"
    first = jobline("push", queue, "--lines", "--key", "k", "--json", stdin=lines).lines
    again = jobline("push", queue, "--lines", "--key", "k", "--json", stdin=lines).lines
    assert {job["outcome"] for job in again} == {"DUPLICATE"}
    assert [job["id"] for job in again] == [job["id"] for job in first]


def test_copies_share_one_lot(jobline, queue):
    lot = jobline("push", queue, "x", "--count", 5, "--json").document
    assert lot["count"] == 5


@pytest.mark.parametrize(
    "arguments",
    [
        ["--delay", "1h", "--at", "2030-01-01"],
        ["--lines", "--count", "2"],
        ["--count", "2", "--wait", "1s"],
        ["-H", "tenant"],
        ["--level", "paper"],
        ["--at", "soon"],
        ["--delay", "soon"],
    ],
)
def test_what_does_not_go_together_is_a_mistake(jobline, queue, arguments):
    ended = jobline("push", queue, *arguments, stdin=b"x")
    assert ended.code == Exit.USAGE
    assert jobline("queue", "get", queue).code == Exit.NOT_FOUND


def test_nobody_listens_says_what_to_do(jobline, queue):
    ended = jobline("push", queue, "x", server="127.0.0.1:1")
    assert ended.code == Exit.UNREACHABLE
    assert "jobline serve" in ended.err
    said = jobline("push", queue, "x", "--json", server="127.0.0.1:1")
    assert json.loads(said.err)["error"]["kind"] == "NotConnected"


def test_refused_name_is_a_mistake_that_names_the_field(jobline):
    ended = jobline("push", "_system", "x", "--json")
    assert ended.code == Exit.USAGE
    assert json.loads(ended.err)["error"]["field"] == "queue"


def test_list_is_narrowed_by_words(jobline, queue):
    push(jobline, queue, "a", "--name", "one")
    two = push(jobline, queue, "b", "--name", "two", "--delay", "1h")
    listed = jobline("job", "ls", f"queue:{queue} state:scheduled", "--json").lines
    assert [job["id"] for job in listed] == [two]
    assert len(jobline("job", "ls", f"queue:{queue}", "--limit", 1, "--json").lines) == 1
    assert jobline("job", "ls", f"queue:{queue}", "newer:1h").out.count(queue) == 2
    assert jobline("job", "ls", "colour:red").code == Exit.USAGE


@pytest.mark.parametrize("limit", [2, 3, 1_000])
def test_a_list_that_is_cut_says_so(jobline, queue, monkeypatch, limit):
    """A person and a program alike; and it has as many pages as it takes."""
    monkeypatch.setattr(jobs, "_PAGE", 2)
    for _ in range(3):
        push(jobline, queue, "x")
    listed = jobline("job", "ls", f"queue:{queue}", "--limit", limit, "--json")
    assert len(listed.lines) == min(limit, 3)
    shown = jobline("job", "ls", f"queue:{queue}", "--limit", limit)
    said = "The first 2, and there are more: --limit, or narrower words."
    assert listed.err.splitlines() == ([json.dumps({"warning": said})] if limit < 3 else [])
    assert shown.err.splitlines() == ([said] if limit < 3 else [])


def test_an_empty_server_is_no_server(jobline):
    ended = jobline("stats", "--server", "")
    assert ended.code == Exit.USAGE
    assert ended.err.startswith("error: --server is empty: give HOST:PORT, or leave it out for")


def test_explain_says_why_it_waits(jobline, queue):
    job_id = push(jobline, queue, "a", "--delay", "1h")
    out = jobline("job", "explain", job_id).out
    assert "SCHEDULED" in out
    assert "its time has not come: due in " in out
    assert jobline("job", "explain", job_id, "--json").document["obstacles"]
    assert jobline("job", "explain", NO_JOB).code == Exit.NOT_FOUND


def test_destructive_verbs_ask_and_count_first(jobline, queue):
    jobline("push", queue, "x", "--count", 3)
    counted = jobline("job", "cancel", f"queue:{queue}", "--dry-run", "--json").document
    assert (counted["count"], counted["dry_run"]) == (3, True)
    asked = jobline("job", "cancel", f"queue:{queue}")
    assert asked.code == Exit.USAGE
    assert "Cancel 3 jobs?" in asked.err
    done = jobline("job", "cancel", f"queue:{queue}", "--yes", "--json").document
    assert done["count"] == 3
    assert jobline("job", "retry", f"queue:{queue}", "--json").document["count"] == 3


@pytest.mark.parametrize("verb", ["cancel", "rm", "retry", "promote"])
def test_id_that_is_not_there_is_told_by_the_exit_code(jobline, queue, verb):
    """Trial D4: 3 as documented, also beside ids that are there and with a dry run; nobody is asked
    whether nothing shall be done.
    """
    missing = jobline("job", verb, NO_JOB, "--json")
    assert missing.code == Exit.NOT_FOUND
    tally = {"count": 0, "requested": 0, "skipped_ids": [NO_JOB], "not_found_ids": [NO_JOB]}
    assert missing.document == tally | {"operation_ids": ANY, "dry_run": ANY}
    assert f"no such job: {NO_JOB}\n" in jobline("job", verb, NO_JOB).out
    there = push(jobline, queue, "x", "--delay", "1h")
    if verb == "retry":
        jobline("job", "cancel", there, "--yes")
    yes = ["--yes"] if verb in {"cancel", "rm"} else []
    assert jobline("job", verb, there, NO_JOB, "--dry-run").code == Exit.NOT_FOUND
    done = jobline("job", verb, NO_JOB, there, *yes, "--json")
    assert (done.code, done.document["count"]) == (Exit.NOT_FOUND, 1)


def test_question_says_what_is_about_to_be_done(jobline, queue):
    """Trial D4: the count is that of jobs which are there; what cannot be done is said."""
    there = push(jobline, queue, "x")
    assert "Cancel 1 job, and leave 1 as they are?" in jobline("job", "cancel", there, NO_JOB).err
    assert "Delete 1 job?" in jobline("job", "rm", there).err


def test_job_whose_state_does_not_allow_it_is_told_by_the_exit_code(jobline, queue):
    """Trial D4: what was refused is as it was."""
    there = push(jobline, queue, "x")
    refused = jobline("job", "retry", there)
    assert refused.code == Exit.REFUSED
    assert f"left as they are: {there}\n" in refused.out


def test_ids_that_do_not_fit_are_told(jobline, queue):
    job_id = push(jobline, queue, "x")
    tally = jobline("job", "promote", job_id, "--json").document
    assert (tally["count"], tally["skipped_ids"]) == (0, [job_id])
    assert jobline("job", "cancel", job_id, f"queue:{queue}").code == Exit.USAGE
    assert jobline("job", "cancel", "--yes").code == Exit.USAGE


def test_waiting_job_is_changed(jobline, queue):
    """Its payload, priority and time; without any of them there is nothing to do."""
    job_id = push(jobline, queue, "old")
    changed = jobline("job", "update", job_id, "new", "--priority", "3", "--delay", "1h", "--json")
    assert changed.document["state"] == "SCHEDULED"
    assert changed.document["options"]["priority"] == 3
    assert "SCHEDULED" in jobline("job", "update", job_id, "--delay", "2h").out
    assert jobline("job", "update", job_id).code == Exit.USAGE


def test_key_is_forgotten(jobline, queue):
    """The next push with it is another job."""
    job_id = push(jobline, queue, "x", "--key", "k")
    assert f"it named job {job_id}" in jobline("job", "forget-key", queue, "k").out
    assert push(jobline, queue, "x", "--key", "k") != job_id
    assert jobline("job", "forget-key", queue, "other").code == Exit.NOT_FOUND


def test_unique_key_is_found_and_freed(jobline, queue):
    job_id = push(jobline, queue, "x", "--unique", "u", "--unique-ttl", "1h")
    again = ("--unique", "u", "--unique-mode", "debounce", "--unique-max-wait", "5s")
    newer = push(jobline, queue, "x", *again, "--delay", "1s")
    assert newer != job_id
    found = jobline("job", "get", queue, "u", "--unique", "--json").document
    assert (found["id"], found["unique_key"]) == (newer, "u")
    assert f"job {newer} held it" in jobline("job", "forget-key", queue, "u", "--unique").out
    assert jobline("job", "get", queue, "u", "--unique").code == Exit.NOT_FOUND


def test_scheduled_job_is_promoted_and_removed(jobline, queue):
    job_id = push(jobline, queue, "x", "--delay", "1h")
    assert "1 job made ready" in jobline("job", "promote", job_id).out
    assert "1 job deleted" in jobline("job", "rm", job_id, "--yes").out
    assert jobline("job", "get", job_id).code == Exit.NOT_FOUND


def test_settings_are_changed_shown_and_taken_back(jobline, queue):
    shown = jobline("queue", "set", queue, "lease=45s", "backoff.base=2s", "max_attempts=9")
    assert "45 s" in shown.out
    changed = jobline("queue", "set", queue, "backoff.max_delay=1m", "max_attempts=", "--json")
    settings = changed.document["settings"]
    assert settings["lease"] == 45.0
    assert settings["backoff"] == {"base": 2.0, "max_delay": 60.0}
    assert "max_attempts" not in settings
    assert jobline("queue", "set", queue, "colour=red").code == Exit.USAGE
    assert jobline("queue", "set", queue, "max_attempts=-1").code == Exit.USAGE


def test_paused_queue_says_why(jobline, queue):
    push(jobline, queue, "x")
    assert jobline("queue", "pause", queue, "--reason", "repairs", "--json").document["paused"]
    assert "paused: repairs" in jobline("queue", "ls", queue).out
    assert "by anonymous@127.0.0.1: repairs" in jobline("queue", "get", queue).out
    assert not jobline("queue", "resume", queue, "--json").document["paused"]


def test_queue_is_emptied_and_deleted(jobline, queue):
    jobline("push", queue, "x", "--count", 4)
    assert jobline("queue", "drain", queue, "--dry-run", "--json").document["count"] == 4
    assert "4 waiting jobs deleted" in jobline("queue", "drain", queue, "--yes").out
    assert jobline("queue", "clean", queue, "name:x", "--yes").code == Exit.USAGE
    assert "0 ended jobs" in jobline("queue", "clean", queue, "state:completed", "--yes").out
    assert jobline("queue", "rm", queue).code == Exit.USAGE
    assert f"the queue {queue} with 0 jobs deleted" in jobline("queue", "rm", queue, "--yes").out
    assert jobline("queue", "get", queue).code == Exit.NOT_FOUND
