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


def test_push_says_all_that_a_job_may_ask_for(jobline, queue):
    """Each option by the name that it has in the protocol."""
    first = json.loads(jobline("push", queue, "x", "--json").out)["id"]
    words = [
        *("--depends-on", str(first), "--on-dependency-failure", "cancel"),
        *("--block-timeout", "1h", "--max-stalls", "7", "--job-key", "k", "--ack-level", "fsynced"),
        *("--backoff", "kind=fixed,base=5s,jitter=0", "--retention", "age=2d,count=9"),
    ]
    ended = jobline("push", queue, "y", *words, "--json")
    assert ended.code == Exit.OK, ended.err
    job = json.loads(jobline("job", "get", str(json.loads(ended.out)["id"]), "--json").out)
    told = job["options"]
    assert (told["depends_on"], told["on_dependency_failure"]) == ([first], "CANCEL")
    assert told["max_stalls"] == 7
    assert (told["backoff"]["kind"], told["backoff"]["jitter"]) == ("FIXED", 0.0)
    assert told["retention"]["count"] == 9


def test_backoff_may_be_a_list_of_pauses(jobline, queue):
    pushed = json.loads(jobline("push", queue, "x", "--backoff", "1s,10s,5m", "--json").out)
    job = json.loads(jobline("job", "get", str(pushed["id"]), "--json").out)
    assert len(job["options"]["backoff"]["delays"]) == 3


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--backoff", "1s,soon"], "--backoff: backoff.delays: 'soon' is not a time span"),
        (["--backoff", "knd=fixed"], "--backoff: 'knd' is no setting: did you mean kind=fixed?"),
        (["--retention", "2d"], "--retention: '2d' is not KEY=VALUE of a setting: remove_on_"),
        (["--retention", "age="], "--retention: 'age=' is not KEY=VALUE: write age=…"),
        (["--sticky"], "--sticky: only with --group"),
        (["--spread", "1h"], "--spread: only with --lines or --count"),
        (["--spread", "1h", "--count", "1001"], "--spread: at most 1,000 jobs"),
    ],
)
def test_push_says_what_is_wrong_with_an_option(jobline, queue, option, said):
    ended = jobline("push", queue, "x", *option)
    assert ended.code == Exit.USAGE
    assert said in " ".join(ended.err.split())


def test_copies_are_spread_over_a_time(jobline, queue):
    assert jobline("push", queue, "x", "--count", "4", "--spread", "2h").code == Exit.OK
    counts = json.loads(jobline("queue", "get", queue, "--json").out)["counts"]
    assert counts["SCHEDULED" if "SCHEDULED" in counts else "scheduled"] == 3


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("max_attempt=5", "'max_attempt' is no setting: did you mean max_attempts=5?"),
        ("base=5s", "'base' is no setting: did you mean backoff.base=5s?"),
        ("maxattempts=5", "did you mean max_attempts=5?"),
        ("lease", "'lease' is not KEY=VALUE: write lease=…"),
        ("colour=red", "'colour=red' is not KEY=VALUE of a setting: lease, max_attempts,"),
    ],
)
def test_a_setting_that_is_none_is_answered_with_what_was_meant(jobline, queue, word, said):
    ended = jobline("queue", "set", queue, word)
    assert ended.code == Exit.USAGE
    assert said in " ".join(ended.err.split())
