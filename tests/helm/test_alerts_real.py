"""The alerts beside a real server: it has each metric that they compare, with the labels named."""

from __future__ import annotations

import asyncio
import re
import ssl
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import trustme

from jobline import AsyncClient, Tls, errors
from jobline_server.testing import running_server
from tests.helm.test_alerts import ALERTS
from tests.server.access import auth_file, key, of_verbs

NAME = re.compile(r"\b((?:jobline|process)_\w+)(?:\{([^}]*)\})?")
LABEL = re.compile(r"(\w+)=")
# A scrape adds these, and those of the volumes are kubelet's.
OF_THE_SCRAPE = {"namespace", "job", "pod", "le"}
GROUPED = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")


async def page_of_everything(folder: Path) -> str:
    """The metrics of a server with TLS, keys, a history and backups, and with a queue."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    (folder / "cert.pem").write_bytes(certificate.cert_chain_pems[0].bytes())
    settings: dict[str, Any] = {
        "tls_certificate": folder / "cert.pem",
        "tls_key": folder / "key.pem",
        "auth": auth_file(folder, of_verbs()),
        "history": str(folder / "history"),
        "backup_to": str(folder / "to"),
        "backup_every_seconds": 3_600,
    }
    token = key("root")
    async with running_server(folder / "data", **settings) as server:
        tls = Tls(ca=str(folder / "ca.pem"))
        async with AsyncClient(server.address, tls=tls) as stranger:
            with pytest.raises(errors.Unauthenticated):
                await stranger.push("mail", {"n": 1})
        async with AsyncClient(server.address, token=token, tls=tls) as client:
            await client.push("mail", {"n": 1})
            (job,) = await client.pull("mail")
            await client.fail(job, "a reason", then="dead")
            while (await client.admin.backups()).last_success_at is None:  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.05)
        request = Request(
            f"https://{server.http}/metrics", headers={"Authorization": f"Bearer {token}"}
        )
        trusted = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        reply = await asyncio.to_thread(urlopen, request, context=trusted)
        page: bytes = reply.read()
        return page.decode()


def samples(page: str) -> dict[str, set[str]]:
    """The labels of each metric that has a sample."""
    found: dict[str, set[str]] = {}
    for line in page.splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{") if "{" in line else (line.split(" ")[0], "", "")
            labels = re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', rest)
            found.setdefault(name, set()).update(labels)
    return found


@pytest.mark.timeout(120)
async def test_each_alert_is_about_metrics_that_a_server_has(tmp_path: Path) -> None:
    """An alert about a metric that was renamed never fires, and looks as if it could."""
    known = samples(await page_of_everything(tmp_path))
    wrong: list[str] = []
    for alert, rule in ALERTS.items():
        expression: str = rule["expr"]
        metrics = [found[0] for found in NAME.findall(expression)]
        wrong += [f"{alert}: {name}" for name in metrics if name not in known]
        given = {label for _, inner in NAME.findall(expression) for label in LABEL.findall(inner)}
        for grouped in GROUPED.findall(expression):
            given |= {label.strip() for label in grouped.split(",")}
        given |= set(re.findall(r"\$labels\.(\w+)", rule["summary"]))
        labels = {label for name in metrics for label in known.get(name, ())}
        if metrics:
            wrong += [f"{alert}: label {label}" for label in given - labels - OF_THE_SCRAPE]
    assert wrong == []
    assert sum(bool(NAME.search(rule["expr"])) for rule in ALERTS.values()) >= len(ALERTS) - 1
