"""`jobline schedule …`."""

from __future__ import annotations

import pytest

from jobline.cli.exit_codes import Exit


def test_life_of_a_schedule(jobline, queue):
    name = f"{queue}-nightly"
    timing = ["--cron", "30 2 * * *", "--time-zone", "Europe/Berlin", "--overlap", "buffer-one"]
    made = jobline("schedule", "create", name, queue, '{"a": 1}', *timing, "--json")
    assert made.code == Exit.OK, made.err
    [schedule] = made.lines
    assert schedule["settings"]["cron"] == "30 2 * * *"
    assert schedule["settings"]["overlap"] == "BUFFER_ONE"
    assert schedule["settings"]["job"]["options"]["content_type"] == "application/json"
    again = jobline("schedule", "create", name, queue, *timing)
    assert again.code == Exit.REFUSED
    assert "--upsert" in again.err
    [changed] = jobline("schedule", "update", name, "--every", "1h30m", "--json").lines
    assert changed["settings"]["every"] == 5_400.0
    assert jobline("schedule", "trigger", name, "--json").document["job_id"]
    skipped = jobline("schedule", "trigger", name)
    assert "its last job has ended" in skipped.out
    [paused] = jobline("schedule", "pause", name, "--reason", "holidays", "--json").lines
    assert (paused["paused"], paused["count"]) == (True, 1)
    assert "paused: holidays" in jobline("schedule", "get", name).out
    jobline("schedule", "resume", name)
    listed = jobline("schedule", "ls", queue, "--queue", queue)
    assert name in listed.out
    assert "every 1 h 30 min" in listed.out
    assert len(jobline("schedule", "preview", name, "-n", "3", "--json").lines) == 3
    assert jobline("schedule", "rm", name, "--yes").code == Exit.OK
    gone = jobline("schedule", "get", name)
    assert gone.code == Exit.NOT_FOUND
    assert "jobline schedule ls" in gone.err


def test_preview_of_a_timing(jobline):
    ran = jobline("schedule", "preview", "--cron", "@yearly", "-n", "2", "--json")
    assert [run["run"][4:] for run in ran.lines] == ["-01-01T00:00:00Z"] * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "s", "q"], "--cron or --every"),
        (["preview"], "--cron or --every"),
        (["preview", "s", "--every", "5s"], "--cron or --every"),
        (["create", "s", "q", "--cron", "@daily", "--start", "soon"], "--start"),
        (["create", "s", "q", "--cron", "@daily", "--every", "5s"], "not both"),
        (["update", "s"], "takes settings"),
        (["create", "s", "q", "--cron", "@daily", "--missed", "often"], "missed"),
    ],
)
def test_mistakes_are_said(jobline, arguments, said):
    ran = jobline("schedule", *arguments)
    assert ran.code == Exit.USAGE
    assert said in ran.err
