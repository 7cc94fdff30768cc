"""Options of `jobline push` for limiters, groups and unique keys; deletion of a limiter."""

from __future__ import annotations

import json

import pytest

from jobline.cli.exit_codes import Exit


@pytest.mark.parametrize(
    ("option", "needed"),
    [
        (["--unique-mode", "replace"], "--unique-mode: only with --unique"),
        (["--unique-ttl", "1h"], "--unique-ttl: only with --unique"),
        (["--on-dead-head", "hold"], "--on-dead-head: only with --group"),
    ],
)
def test_push_refuses_an_option_that_would_do_nothing(jobline, queue, option, needed):
    ended = jobline("push", queue, "x", *option)
    assert ended.code == Exit.USAGE
    assert needed in ended.err


def test_push_takes_what_a_job_passes_and_what_its_death_does(jobline, queue):
    assert jobline("limiter", "set", f"{queue}-api", "--concurrency", "3").code == Exit.OK
    options = ["--limiter", f"{queue}-api", "--cost", "2"]
    held = ["--group", "a", "--on-dead-head", "hold"]
    pushed = json.loads(jobline("push", queue, "x", *options, *held, "--json").out)
    job = json.loads(jobline("job", "get", str(pushed["id"]), "--json").out)
    told = job["options"]
    assert (told["limiters"], told["cost"]) == ([f"{queue}-api"], 2)
    assert told["on_dead_head"] == "HOLD"


def test_deletion_of_a_limiter_has_no_dry_run_to_name(jobline):
    ended = jobline("limiter", "rm", "api")
    assert "Delete the limiter api? There is nobody to ask: add --yes." in ended.err
    ended = jobline("limiter", "rm", "api", "--yes")
    assert (ended.code, "jobline limiter ls" in ended.err) == (Exit.NOT_FOUND, True)
