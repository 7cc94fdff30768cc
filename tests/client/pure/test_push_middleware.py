"""Middleware around pushes: what it sees, and what it may change."""

from __future__ import annotations

from jobline import JobOptions
from jobline.pushing import Outgoing, through
from tests.client.pure.test_pushing import lane


def test_middleware_may_change_everything_about_a_push():
    """The first one is outermost; the last word counts."""

    def header(outgoing: Outgoing) -> Outgoing:
        options = outgoing.options.merged(JobOptions(headers={"trace": "1"}))
        return Outgoing(outgoing.queue, outgoing.payload + b"!", options, outgoing.job_key)

    def key(outgoing: Outgoing) -> Outgoing:
        return Outgoing("r", outgoing.payload, outgoing.options, f"{outgoing.payload.decode()}")

    changed, payload, job_key = through([header, key], lane(is_json=True, name="n"), b"1", "")
    assert (changed.queue, payload, job_key, changed.has_key) == ("r", b"1!", "1!", True)
    assert changed.options == JobOptions(
        name="n", content_type="application/json", headers={"trace": "1"}
    )
