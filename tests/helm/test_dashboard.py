"""The dashboard and the alerts name metrics that the server has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from jobline import AsyncClient
from jobline_server.config import Settings
from jobline_server.testing import running_server
from tests.helm.rendering import CHART, ROOT

METRIC = re.compile(r"\b((?:jobline|process)_[a-z0-9_]+)\b")
SUFFIX = re.compile(r"_(total|bucket|count|sum|info)$")
# Metrics of what is off unless a setting turns it on.
OF_SETTINGS = {
    "jobline_backup_last_success_timestamp_seconds": "backup_to",
    "jobline_backup_failures_total": "backup_to",
    "jobline_tls_certificate_expiry_timestamp_seconds": "tls_certificate",
    "jobline_auth_refused_total": "auth",
    "jobline_auth_file_wrong": "auth",
}
# What comes with the scaler of KEDA, and only of queues with an objective.
OF_SCALER = {"jobline_queue_workers_needed"}
SCALER = ROOT / "proto" / "externalscaler"


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (CHART / "files" / "dashboard.json").read_text(encoding="utf-8")
    )
    return found


def panels() -> Iterator[dict[str, Any]]:
    return (panel for panel in dashboard()["panels"] if panel["type"] != "row")


def named_metrics() -> set[str]:
    """Each metric that a panel, a variable or an alert asks for."""
    alerts = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))
    texts = [target["expr"] for panel in panels() for target in panel["targets"]]
    texts += [variable["query"]["query"] for variable in dashboard()["templating"]["list"][1:]]
    texts += [alert["expr"] for alert in alerts.values()]
    return {name for text in texts for name in METRIC.findall(text)}


@pytest.fixture
async def served(tmp_path: Path) -> set[str]:
    """The metrics of a server that exports its history and has done a job."""
    async with running_server(history=str(tmp_path / "history")) as server:
        async with AsyncClient(server.address) as client:
            await client.push("mail", b"x")
            (job,) = await client.pull("mail", wait=5)
            await client.ack(job)
        async with httpx.AsyncClient() as http:
            page = (await http.get(f"http://{server.http}/metrics")).text
    return set(re.findall(r"^# TYPE (\S+) ", page, re.MULTILINE))


def code_has(name: str) -> bool:
    """Whether the server's code makes a metric, which shows only with some settings."""
    text = f'"{SUFFIX.sub("", name)}'
    return any(text in path.read_text() for path in (ROOT / "service").rglob("*.py"))


async def test_every_metric_is_one_of_the_server(served):
    """A panel that asks for another would be empty for ever, and an alert never fire."""
    known = served | {SUFFIX.sub("", name) for name in served}
    for name in named_metrics():
        if name in OF_SCALER:
            assert code_has(name) or not SCALER.exists(), name
        elif name in OF_SETTINGS:
            assert code_has(name) or OF_SETTINGS[name] not in Settings.model_fields, name
        else:
            assert {name, SUFFIX.sub("", name)} & known, name


def test_series_of_this_release_alone_are_asked_for():
    """Two servers in one Prometheus would be added up."""
    for panel in panels():
        for target in panel["targets"]:
            for selector in re.findall(r"(?:jobline|process)_\w+(\{[^}]*\})?", target["expr"]):
                assert selector.startswith('{namespace="$namespace",job="$job"'), target["expr"]


def test_panels_do_not_overlap_and_have_numbers_of_their_own():
    taken: dict[tuple[int, int], int] = {}
    found = dashboard()["panels"]
    for panel in found:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["id"]) == panel["id"], panel["title"]
    assert len({panel["id"] for panel in found}) == len(found)


def test_the_dashboard_shows_everything_that_alerts_are_about():
    """An alert sends people to look; what they look for should be there."""
    shown = {
        SUFFIX.sub("", name)
        for panel in panels()
        for target in panel["targets"]
        for name in METRIC.findall(target["expr"])
    }
    alerts = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))
    about = {
        SUFFIX.sub("", name) for alert in alerts.values() for name in METRIC.findall(alert["expr"])
    }
    assert about <= shown
