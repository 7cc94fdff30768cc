"""What docs/operations.md names is there: metrics and pages, on the server that is running."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
METRICS = PAGE.partition("| metric | |")[2].partition("Worth an alert")[0]


def fetched(served, page: str) -> str:
    with urllib.request.urlopen(f"http://{served['http']}{page}", timeout=20) as answer:
        assert answer.status == 200
        text: str = answer.read().decode()
    return text


def test_every_metric_is_named_and_every_name_is_a_metric(served):
    """Those of a part that a server may have are on the pages of servers that have it."""
    shown = set(re.findall(r"^# TYPE (jobline_\w+)", fetched(served, "/metrics"), re.MULTILINE))
    named = set(re.findall(r"`(jobline_\w+)", METRICS))
    parts = ("history", "backup", "spans", "auth", "tls")
    optional = tuple(f"jobline_{part}_" for part in parts)
    assert shown == {name for name in named if not name.startswith(optional)}


def test_pages_of_health_answer(served):
    for page in ("/healthz", "/readyz"):
        assert f"`{page}`" in PAGE
        assert fetched(served, page)
