"""Work from the command line: shell commands and functions, and what becomes of their jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from jobline.cli.exit_codes import Exit
from tests.cli.conftest import NO_JOB
from tests.cli.test_commands import push

IDLE = ["--exit-when-idle", "0.5s"]


def work(jobline, queue, *arguments):
    return jobline("work", queue, "--json", *IDLE, *arguments)


def test_command_gets_payload_and_environment_and_its_stdout_is_the_result(jobline, queue):
    job_id = push(jobline, queue, "hello", "--name", "shout")
    line = 'echo "$(tr a-z A-Z) $JOBLINE_JOB_NAME $JOBLINE_JOB_ID $JOBLINE_JOB_ATTEMPT"'
    done = work(jobline, queue, "--result", "--shell", line)
    assert [job["outcome"] for job in done.lines] == ["done"]
    ended = jobline("job", "wait", job_id, "--json").document
    assert ended["result"] == f"HELLO shout {job_id} 1"


def test_exit_codes_say_what_becomes_of_a_job(jobline, queue):
    jobline("queue", "set", queue, "max_attempts=1")
    failed = push(jobline, queue, "echo first >&2; echo because >&2; exit 3")
    bad = push(jobline, queue, "exit 65")
    later = push(jobline, queue, "exit 75")
    killed = push(jobline, queue, "kill -9 $$")
    work(jobline, queue, "--result", "-c", 4, "--shell", 'sh -c "$(cat)"')
    dead = {job["id"]: job for job in jobline("dead", "ls", f"queue:{queue}", "--json").lines}
    assert dead[failed]["error"]["type"] == "ExitStatus"
    assert dead[failed]["error"]["message"] == "exit code 3: because"
    assert dead[failed]["error"]["stack"] == "first\nbecause\n"
    assert dead[bad]["reason"] == "EXPLICIT_FAIL"
    assert "137" in dead[killed]["error"]["message"] or "KILL" in dead[killed]["error"]["message"]
    assert jobline("job", "get", later, "--json").document["state"] == "SCHEDULED"


def test_dead_jobs_are_counted_put_back_and_purged(jobline, queue):
    jobline("queue", "set", queue, "max_attempts=1")
    for payload in ("a", "b", "c"):
        push(jobline, queue, payload, "--name", payload)
    work(jobline, queue, "--", "false")
    died = jobline("dead", "ls", f"queue:{queue}", "--limit", "1", "--json").document["id"]
    explained = jobline("job", "explain", str(died)).out
    assert "it is DEAD (max_attempts_exceeded)" in explained
    counts = jobline("dead", "stats", queue, "--json").document
    assert counts["total"] == 3
    assert "MAX_ATTEMPTS_EXCEEDED" in json.dumps(counts)
    words = [f"queue:{queue}", "reason:max_attempts_exceeded", "name:a"]
    assert jobline("dead", "retry", *words, "--json").document["count"] == 1
    assert jobline("dead", "retry", f"queue:{queue} name:b", "--json").document["count"] == 1
    assert "No such dead" in jobline("dead", "retry", f"queue:{queue} reason:stalled").out
    assert jobline("dead", "purge", f"queue:{queue}", "--dry-run", "--json").document["count"] == 1
    assert "1 dead job deleted" in jobline("dead", "purge", f"queue:{queue}", "--yes").out
    assert jobline("dead", "purge", "5", "--yes").code == Exit.USAGE


def test_function_gets_the_payload_as_its_type(jobline, queue, tmp_path, monkeypatch):
    module = tmp_path / "mail_of_test.py"
    module.write_text("def send(payload: dict) -> dict:\n    return {'sent': payload['to']}\n")
    monkeypatch.chdir(tmp_path)
    job_id = push(jobline, queue, '{"to":"a@b.c"}', "--name", "welcome")
    work(jobline, queue, "--function", "mail_of_test:send")
    assert jobline("job", "wait", job_id, "--json").document["result"] == '{"sent":"a@b.c"}'


def test_declared_job_runs_for_the_queue_it_is_declared_for(jobline, queue, tmp_path, monkeypatch):
    module = tmp_path / "declared_of_test.py"
    module.write_text(
        f"from jobline import job\n@job(queue={queue!r})\ndef double(n: int) -> int:\n"
        "    return 2 * n\n"
    )
    monkeypatch.chdir(tmp_path)
    for wrong in (["other"], [queue, "--name", "triple"]):
        ended = jobline("work", *wrong, "--function", "declared_of_test:double")
        assert ended.code == Exit.USAGE
        assert f"jobline work {queue} --function declared_of_test:double" in ended.err
    job_id = push(jobline, queue, "21", "--name", "double")
    work(jobline, queue, "--function", "declared_of_test:double")
    assert jobline("job", "wait", job_id, "--json").document["result"] == "42"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--shell", "true", "--", "true"],
        ["--", "no-such-command-anywhere"],
        ["--function", "json"],
        ["--function", "no_such_module_anywhere:x"],
        ["--function", "json:no_such_name"],
        ["--function", "json:__name__"],
    ],
)
def test_what_cannot_be_run_is_a_mistake(jobline, queue, arguments):
    assert jobline("work", queue, *arguments).code == Exit.USAGE


def test_waiting_says_how_jobs_ended_by_the_exit_code(jobline, queue):
    jobline("queue", "set", queue, "max_attempts=1")
    good, bad = push(jobline, queue, "true"), push(jobline, queue, "false")
    work(jobline, queue, "--shell", 'sh -c "$(cat)"', "--result")
    assert jobline("job", "wait", good).code == Exit.OK
    both = jobline("job", "wait", good, bad, "--json")
    assert both.code == Exit.NOT_DONE
    assert {end["id"]: end["state"] for end in both.lines} == {good: "COMPLETED", bad: "DEAD"}
    assert jobline("job", "wait", good, NO_JOB).code == Exit.NOT_FOUND
    assert jobline("job", "wait", bad, NO_JOB).code == Exit.NOT_DONE
    open_id = push(jobline, queue, "true", "--delay", "1h")
    assert jobline("job", "wait", open_id, "--timeout", "50ms").code == Exit.TIMED_OUT


def test_job_that_has_not_ended_in_time_is_a_line_of_json(jobline, queue):
    """Trial D4: a wait that times out prints a line for each job that has not ended."""
    open_ids = [push(jobline, queue, "true", "--delay", "1h") for _ in range(2)]
    waited = jobline("job", "wait", *open_ids, NO_JOB, "--timeout", "50ms", "--json")
    assert waited.code == Exit.TIMED_OUT
    said = {one["id"]: (one["timed_out"], one["not_found"]) for one in waited.lines}
    assert said == {NO_JOB: (False, True), **dict.fromkeys(open_ids, (True, False))}
    assert len({tuple(one) for one in waited.lines}) == 1, "all lines have the same keys"


def test_push_that_waits_ends_as_its_job_does(jobline, queue):
    ended = jobline("push", queue, "x", "--wait", "50ms")
    assert ended.code == Exit.TIMED_OUT
    assert "jobline job wait" in ended.err


def test_work_says_how_each_job_went(jobline, queue):
    jobline("queue", "set", queue, "max_attempts=1")
    codes = {0: "done", 65: "dead", 75: "snooze", 3: "failed"}
    for code in codes:
        push(jobline, queue, f"exit {code}")
    said = work(jobline, queue, "--result", "--shell", 'sh -c "$(cat)"').lines
    assert sorted(job["outcome"] for job in said) == sorted(codes.values())
    assert {job["error"] for job in said if job["outcome"] == "failed"} == {
        "ExitStatus: exit code 3"
    }


@pytest.mark.parametrize(
    "closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full", ">/dev/full"]
)
def test_jobs_are_done_without_a_standard_stream(jobline, served, queue, closed):
    """The next socket would have its number. A full disk under the log is no failure either, but
    one under the output of a command is, unless that is kept as the result.
    """
    jobline("push", queue, "x", "--count", 3)
    kept = "--result" if closed == ">/dev/full" else ""
    words = f"work {queue} {' '.join(IDLE)} {kept} --server {served['grpc']} -- cat"
    ended = subprocess.run(
        ["/bin/sh", "-c", f"exec {sys.executable} -m jobline.cli {words} {closed}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == Exit.OK, ended.stderr
    assert "Traceback" not in ended.stderr
    assert jobline("queue", "get", queue, "--json").document["completed_total"] == 3


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_jobs_are_done_though_nobody_reads_of_them(jobline, served, queue, how):
    """`jobline work … | head -1` used to fail the jobs whose line it could not print."""
    jobline("push", queue, "x", "--count", 3)
    reader, writer = os.pipe()
    os.close(reader)
    words = ["work", queue, *how, *IDLE, "--result", "--server", served["grpc"], "--", "cat"]
    ended = subprocess.run(
        [sys.executable, "-m", "jobline.cli", *words],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert ended.returncode == Exit.OK, ended.stderr
    assert "Traceback" not in ended.stderr
    assert jobline("queue", "get", queue, "--json").document["completed_total"] == 3
