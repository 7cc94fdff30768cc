"""`jobline group` against a real server."""

from __future__ import annotations

from jobline.cli.exit_codes import Exit


def test_groups_are_listed_paused_and_resumed(jobline, queue):
    for group in ("a", "a", "b"):
        assert jobline("push", queue, "{}", "--group", group).code == Exit.OK
    shown = jobline("group", "ls", queue).out
    assert "a" in shown
    assert "b" in shown
    paused = jobline("group", "pause", queue, "b", "--reason", "fraud", "--json").document
    assert (paused["paused"], paused["pause_reason"], paused["ready"]) == (True, "fraud", 1)
    assert "fraud" in jobline("group", "ls", queue, "b").out
    assert jobline("group", "resume", queue, "b", "--json").document["paused"] is False
    assert jobline("group", "ls", "nowhere").code == Exit.NOT_FOUND


def test_one_group_is_shown_with_what_it_waits_for(jobline, queue):
    for group in ("a", "a", "ab"):
        assert jobline("push", queue, "{}", "--group", group).code == Exit.OK
    jobline("group", "set", queue, "a", "max_waiting=7")
    shown = jobline("group", "get", queue, "a").out
    assert "max_waiting=7" in shown
    assert "waits for" not in shown
    found = jobline("group", "get", queue, "a", "--json").document
    assert (found["group"], found["ready"], found["active"]) == ("a", 2, 0)
    jobline("group", "pause", queue, "a", "--reason", "fraud")
    assert "to be resumed" in jobline("group", "get", queue, "a").out
    missing = jobline("group", "get", queue, "b")
    assert missing.code == Exit.NOT_FOUND
    assert f"group b of queue {queue} has no live jobs" in missing.err
    assert jobline("group", "get", "nowhere", "a").code == Exit.NOT_FOUND


def test_settings_of_a_group_are_words(jobline, queue):
    jobline("push", queue, "{}", "--group", "a")
    shown = jobline("group", "set", queue, "a", "concurrency=2", "on_dead_head=hold").out
    assert "concurrency=2" in shown
    assert "on_dead_head=hold" in shown
    back = jobline("group", "set", queue, "a", "concurrency=", "--json").document
    assert "concurrency" not in back["settings"]
    assert jobline("group", "set", queue, "a", "colour=red").code == Exit.USAGE
    assert "group.concurrency" in jobline("queue", "set", queue, "group.concurrency=3").out


def test_group_is_limited_for_a_time_and_has_a_rate(jobline, queue):
    jobline("push", queue, "{}", "--group", "a")
    limited = jobline("group", "limit", queue, "a", "--for", "5m", "--reason", "429").out
    assert "429" in limited
    assert "429" in jobline("group", "ls", queue).out
    assert "the end of its limit" in jobline("group", "get", queue, "a").out
    lifted = jobline("group", "limit", queue, "a", "--json").document
    assert not lifted.get("limited_until")
    assert "rate=1/1m" in jobline("group", "set", queue, "a", "rate=1/1m").out
    for _ in range(2):
        jobline("push", queue, "{}", "--group", "a")
    jobline("work", queue, "--function", "builtins:len", "--exit-when-idle", "0.1s")
    assert "the next token of its rate" in jobline("group", "get", queue, "a").out


def test_job_shows_its_group_and_is_found_by_it(jobline, queue):
    pushed = jobline("push", queue, "{}", "--group", "acme", "--json").document["id"]
    assert "acme" in jobline("job", "get", pushed).out
    found = jobline("job", "ls", f"queue:{queue}", "group:acme", "--json")
    assert str(pushed) in found.out
