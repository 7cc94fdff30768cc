"""`jobline webhook …`."""

from __future__ import annotations

import pytest

from jobline.cli.exit_codes import Exit

URL = "http://hook.example/x"


def test_life_of_a_webhook(jobline, queue):
    name = f"{queue}-hook"
    filters = ["--event", "dead", "--event", "completed", "--queue", "mail-*", "--tag", "a"]
    made = jobline("webhook", "create", name, URL, *filters, "--json")
    assert made.code == Exit.OK, made.err
    assert made.document["secret"].startswith("whsec_")
    settings = made.document["webhook"]["settings"]
    assert (settings["url"], settings["queue"], settings["tags"]) == (URL, "mail-*", ["a"])
    [changed] = jobline("webhook", "update", name, "--disable", "--json").lines
    assert changed["settings"]["disabled"]
    assert "disabled" in jobline("webhook", "get", name).out
    assert "Nothing was sent" in jobline("webhook", "deliveries", name).err
    assert "is sent" in jobline("webhook", "test", name).out
    secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
    assert secret in jobline("webhook", "rotate", name, "--secret", secret).out
    assert secret not in jobline("audit").out
    assert name in jobline("webhook", "ls", queue).out
    assert jobline("webhook", "rm", name, "--yes").code == Exit.OK
    gone = jobline("webhook", "get", name)
    assert gone.code == Exit.NOT_FOUND
    assert "jobline webhook ls" in gone.err


def test_incoming_webhook(jobline, queue):
    made = jobline("webhook", "create", f"{queue}-in", "--incoming", queue)
    assert "whsec_" in made.out
    assert f"→ {queue}" in jobline("webhook", "get", f"{queue}-in").out


def test_job_with_a_url(jobline, queue):
    pushed = jobline("push", queue, "x", "--webhook", URL, "--json")
    assert pushed.code == Exit.OK, pushed.err
    assert URL in jobline("job", "get", pushed.document["id"]).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "w"], "url"),
        (["create", "w", "x"], "url"),
        (["create", "w", URL, "--incoming", "q"], "url"),
        (["create", "w", URL, "--event", "never"], "events"),
        (["update", "w"], "takes settings"),
    ],
)
def test_mistakes_are_said(jobline, arguments, said):
    ran = jobline("webhook", *arguments)
    assert ran.code == Exit.USAGE
    assert said in ran.err
