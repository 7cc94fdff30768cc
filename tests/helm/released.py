"""A release with all that the chart has, `everything.yaml`, running: its server in the pod of the
StatefulSet, what the values say exists, and programs of other pods beside it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import trustme

from tests.helm.pods import Release, Secrets, variables_of_the_image
from tests.helm.rendering import ROOT, Object, of_kind, run, tool
from tests.helm.sandbox import Running, Sandbox, ended, serving
from tests.server.access import api_key, key, role
from tests.unit.auth.tokens import Issuer, issuer_lines

VALUES = "everything"
HOST = "jobs-jobline.jobs.svc"
PROTO = ROOT / "proto" / "externalscaler"
POLL_SECONDS = 0.2

AUTH = "".join(
    (
        role("operator", (["*"], ["admin", "read", "manage"])),
        role("watcher", (["*"], ["read"])),
        role("producer", (["mail.*"], ["push", "read"])),
        role("worker", (["mail.*"], ["work"])),
        api_key("operator", "operator"),
        api_key("doctor", "watcher"),
        api_key("scrape", "watcher"),
        role("saver", (["*"], ["admin"])),
        api_key("backup", "saver"),
        api_key("shop", "producer"),
        api_key("mail", "worker"),
        # KEDA sends no token: it is known by its certificate.
        role("scaler", (["mail.*"], ["read"])),
        '[[certificates]]\nname = "chart.jobs"\nroles = ["scaler"]\n',
        api_key("guest", "watcher"),
        issuer_lines('jwks_file = "keys.json"'),
    )
)
ISSUER = Issuer()

WORKER = """
import argparse, os
from jobline import Worker

options = argparse.ArgumentParser()
options.add_argument("--concurrency", type=int)
worker = Worker(concurrency=options.parse_args().concurrency)

@worker.handler("mail.high")
async def send(payload, context):
    print("sent to", payload["to"], "as", os.environ["SENDER"], os.environ["LOG_LEVEL"], flush=True)

worker.run()
"""


def keypair(issued: trustme.LeafCert) -> dict[str, bytes]:
    """A Secret as cert-manager makes it."""
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    return {"tls.crt": chain, "tls.key": issued.private_key_pem.bytes()}


@dataclass
class Authorities:
    """Who signs the certificates of the server, and those of clients."""

    server: trustme.CA
    clients: trustme.CA

    def serving(self) -> dict[str, bytes]:
        """A new certificate of the server."""
        return {**keypair(self.server.issue_cert(HOST)), "ca.crt": self.server.cert_pem.bytes()}

    def secrets(self) -> Secrets:
        """The Secrets that the values name. Files of tokens end with a line, as
        `jobline auth new-key >FILE` and `kubectl create secret --from-file` make them.
        """
        return {
            "jobline-tls": self.serving(),
            "jobline-client-ca": {"clients.pem": self.clients.cert_pem.bytes()},
            "jobline-client": keypair(self.clients.issue_cert("chart.jobs")),
            "jobline-auth": {"auth.toml": AUTH.encode(), "keys.json": ISSUER.jwks()},
            "jobline-backup": {"AWS_ACCESS_KEY_ID": b"nobody"},
            "jobline-backup-token": {"token": f"{key('backup')}\n".encode()},
            "jobline-scrape": {"token": key("scrape").encode()},
            "jobline-doctor": {"key": f"{key('doctor')}\n".encode()},
            "mail": {"SENDER": b"post@example.com", "LOG_LEVEL": b"error"},
            "mail-token": {"token": f"{key('mail')}\n".encode()},
            "mail-certificate": keypair(self.clients.issue_cert("mail.jobs")),
        }


@dataclass
class Cluster:
    """The server of a release, and what runs beside it."""

    release: Release
    server: Running
    image: dict[str, str]
    log: Path

    def program(self, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a program in a pod like that of `helm test`, with variables of its own."""
        return run(*self._command(*words, **variables))

    def begin(self, *words: str | Path) -> subprocess.Popen[str]:
        """Starts a program there."""
        return subprocess.Popen(self._command(*words), stdout=subprocess.PIPE, text=True)

    def jobline(self, token: str, *words: str) -> Any:
        """Runs a command of `jobline` with a token; returns what it prints as JSON."""
        done = self.program("jobline", *words, "--json", JOBLINE_TOKEN=token)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def _command(self, *words: str | Path, **variables: str) -> list[str]:
        pod, container = self.release.pod_of("Pod")
        sandbox = self.release.sandbox(pod, container, self.image)
        sandbox.environment |= variables
        sandbox.read_only["/secrets"] = self._secrets
        return self.release.beside(self.server, sandbox, *words)

    def secret(self, reference: Object) -> Path:
        """A file with what an object refers to, for programs; the path is that inside."""
        name, item = reference["name"], reference["key"]
        (self._secrets / f"{name}-{item}").write_bytes(self.release.secrets[name][item])
        return Path("/secrets") / f"{name}-{item}"

    @property
    def _secrets(self) -> Path:
        folder = self.release.folder / "secrets"
        folder.mkdir(exist_ok=True)
        return folder

    def until_logged(self, event: str) -> None:
        """Waits until the server has logged something."""
        until(lambda: f'"event": "{event}"' in self.log.read_text(), self.log)


def until(is_so: Any, log: Path) -> None:
    """Waits for what other processes do."""
    for _ in range(300):
        if is_so():
            return
        Event().wait(POLL_SECONDS)
    raise AssertionError(log.read_text())


@contextmanager
def released(release: Release, name: str) -> Iterator[Cluster]:
    """Runs the server of a release, with its Services."""
    folder = release.folder / name
    folder.mkdir()
    image = variables_of_the_image(folder)
    pod, container = release.pod_of("StatefulSet")
    sandbox = release.sandbox(pod, container, image)
    words = ["python", "-m", "jobline_server", *container["args"]]
    with serving(sandbox, words, folder / "log") as server, forwarding(release, server):
        yield Cluster(release, server, image, folder / "log")


@contextmanager
def forwarding(release: Release, server: Running) -> Iterator[None]:
    """Does for Services what the network of a node does."""
    sandbox = Sandbox(0, {str(ROOT): ROOT}, environment={"PYTHONPATH": str(ROOT)}, network=True)
    python = ROOT / ".venv" / "bin" / "python"
    words = [str(python), "-m", "tests.helm.forwarding", *release.forwards()]
    process = subprocess.Popen(
        release.beside(server, sandbox, *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with ended(process):
        assert process.stdout.readline() == "ready\n"
        yield


def grpcurl_as_keda(running: Cluster, method: str, request: Object) -> list[str | Path]:
    """The command line of a call as KEDA makes it, with what its objects say: KEDA is written in Go
    too, and trusts and shows what its TriggerAuthentication has.
    """
    release = running.release
    trigger, given = trigger_of(release)
    options: list[str | Path] = []
    for parameter, option in (
        ("caCert", "-cacert"),
        ("tlsClientCert", "-cert"),
        ("tlsClientKey", "-key"),
    ):
        if parameter in given:
            options += [option, running.secret(given[parameter])]
    if trigger["metadata"].get("enableTLS") != "true":
        options += ["-plaintext"]
    options += ["-import-path", PROTO, "-proto", "externalscaler.proto", "-emit-defaults"]
    address = trigger["metadata"]["scalerAddress"]
    method = f"externalscaler.ExternalScaler/{method}"
    return [tool("grpcurl"), *options, "-d", json.dumps(request), address, method]


def trigger_of(release: Release) -> tuple[Object, Object]:
    """The trigger of the ScaledObject, and the references of its TriggerAuthentication."""
    (scaled,) = of_kind(release.values, "ScaledObject")
    (trigger,) = scaled["spec"]["triggers"]
    (authentication,) = of_kind(release.values, "TriggerAuthentication")
    assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
    references = authentication["spec"]["secretTargetRef"]
    return trigger, {one["parameter"]: one for one in references}
