"""The real server with the settings, command and user of the rendered pod, and its probes."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

from jobline_server.config import Settings, load_settings
from tests.helm.rendering import ROOT, Object, of_kind, run, tool
from tests.helm.sandbox import Running, Sandbox, serving

DATA = "/var/lib/jobline"
SETTINGS = "/etc/jobline/settings/jobline.toml"


def settings_of(values: str) -> str:
    (text,) = (
        found["data"]["jobline.toml"]
        for found in of_kind(values, "ConfigMap")
        if "jobline.toml" in found["data"]
    )
    return str(text)


def container_of(values: str) -> tuple[Object, Object]:
    """The server's pod and its container."""
    (server,) = of_kind(values, "StatefulSet")
    pod: Object = server["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def sandbox_of(values: str, folder: Path) -> Sandbox:
    """A sandbox with the mounts of a pod: nothing else can be written. Secrets are folders of the
    test, by the names of their volumes.
    """
    pod, container = container_of(values)
    uid = pod["securityContext"].get("runAsUser", 7070)
    (folder / "jobline.toml").write_text(settings_of(values))
    read_only = {SETTINGS: folder / "jobline.toml", str(ROOT): ROOT}
    writable = {}
    for mount in container["volumeMounts"]:
        path, outside = mount["mountPath"], folder / mount["name"]
        if mount["name"] in {"data", "backup"}:
            outside.mkdir()
            os.chown(outside, uid, uid)
            writable[path] = outside
        elif mount["name"] not in {"tmp", "settings"}:
            read_only[path] = outside
    variables = {
        entry["name"]: entry["value"] for entry in container.get("env", []) if "value" in entry
    }
    return Sandbox(uid, read_only, writable, {"PATH": "/usr/bin", **variables})


def words_of(values: str) -> list[str]:
    """The command of the image, with the arguments of the pod."""
    _, container = container_of(values)
    python = ROOT / ".venv" / "bin" / "python"
    return [str(python), "-m", "jobline_server", *container["args"]]


def probe(running: Running, action: Object) -> str:
    """Does what kubelet does for a gRPC probe."""
    address = f"-addr=127.0.0.1:{action['grpc']['port']}"
    done = running.beside(
        tool("grpc-health-probe"), address, "-connect-timeout=5s", "-rpc-timeout=5s"
    )
    return (done.stdout + done.stderr).strip().rpartition("\n")[2]


@pytest.mark.root
@pytest.mark.parametrize("values", ["default", "minimal"])
def test_the_server_runs_as_the_chart_says(values, tmp_path):
    """As its user, without rights, on a read-only root; probes pass, SIGTERM ends it."""
    _, container = container_of(values)
    with serving(sandbox_of(values, tmp_path), words_of(values), tmp_path / "log") as running:
        status = running.status()
        assert status["Uid"].split() == ["7070"] * 4
        assert status["NSpid"].split()[1] == "1"
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert running.ready["grpc"] == "0.0.0.0:7070"
        for kind in ("startup", "readiness", "liveness"):
            assert probe(running, container[f"{kind}Probe"]) == "status: SERVING", kind
        listed = running.beside(tool("grpcurl"), "-plaintext", "127.0.0.1:7070", "list")
        assert "jobline.v1.JobService" in listed.stdout, listed.stderr
        metrics = running.beside("curl", "-fsS", "http://127.0.0.1:7071/metrics")
        assert "jobline_info{" in metrics.stdout, metrics.stderr
        assert running.stop() == 0
    assert (tmp_path / "data" / "data" / "jobline.db").exists()


@pytest.mark.root
@pytest.mark.skipif(
    not {"tls_certificate", "health_listen", "backup_to"} <= Settings.model_fields.keys(),
    reason="needs a server that knows TLS, backups and health_listen",
)
def test_a_server_with_tls_passes_its_probes_in_plain_text(tmp_path):
    """The port that serves health alone has no TLS; all else has, by the name of the Service."""
    _, container = container_of("tls-backup")
    host = "jobs-jobline.jobs.svc"
    certificate_for(host, tmp_path / "tls")
    sandbox = sandbox_of("tls-backup", tmp_path)
    with serving(sandbox, words_of("tls-backup"), tmp_path / "log") as running:
        assert running.ready["transport"] == "native"
        for kind in ("startup", "readiness", "liveness"):
            assert probe(running, container[f"{kind}Probe"]) == "status: SERVING", kind
        listing = (*("-authority", host, "127.0.0.1:7070"), "list")
        authority = ("-cacert", tmp_path / "tls" / "tls.crt")
        listed = running.beside(tool("grpcurl"), *authority, *listing)
        assert "jobline.v1.JobService" in listed.stdout, listed.stderr
        plain = running.beside(tool("grpcurl"), "-plaintext", "-max-time", "5", *listing)
        assert plain.returncode != 0
        health = running.beside(tool("grpcurl"), "-plaintext", "127.0.0.1:7072", "list")
        assert "jobline.v1.JobService" not in health.stdout
        assert running.stop() == 0


def certificate_for(host: str, folder: Path) -> None:
    """Makes a certificate that is its own authority, with its key."""
    folder.mkdir()
    made = run(
        *(tool("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-days", "2", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"),
        *("-keyout", folder / "tls.key", "-out", folder / "tls.crt"),
    )
    assert made.returncode == 0, made.stderr
    (folder / "tls.key").chmod(0o644)


@pytest.mark.root
def test_helm_test_finds_a_server_well(tmp_path):
    """The command of the pod of `helm test`, beside the server."""
    (pod,) = (found for found in of_kind("default", "Pod"))
    (container,) = pod["spec"]["containers"]
    with serving(sandbox_of("default", tmp_path), words_of("default"), tmp_path / "log") as running:
        program, *words = container["command"]
        done = running.beside(
            *("env", "JOBLINE_SERVER=127.0.0.1:7070"),
            *(ROOT / ".venv" / "bin" / program, *words),
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_setting_that_the_server_does_not_know_would_stop_it():
    """So what the chart writes by itself is known, or promised to be."""
    promised = {"health_listen", "auth", "backup_to", "backup_every_seconds", "backup_keep"}
    promised |= {"tls_certificate", "tls_key", "tls_client_ca"}
    for values in ("default", "everything", "tls-auth", "external-secrets", "workers-keda"):
        assert tomllib.loads(settings_of(values)).keys() <= Settings.model_fields.keys() | promised


@pytest.mark.parametrize(
    "values", ["default", "minimal", "workers-keda", "long-names", "tls-backup", "everything"]
)
def test_the_server_takes_the_settings(values, tmp_path):
    """Each file is one that `load_settings` reads; what only a newer server knows is left out."""
    known = {
        name: value
        for name, value in tomllib.loads(settings_of(values)).items()
        if name in Settings.model_fields
    }
    file = tmp_path / "jobline.toml"
    file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in known.items()))
    load_settings({}, file)


def test_the_grace_period_is_longer_than_the_drain():
    """Else the server would be killed while workers finish."""
    for values, drain in (("default", 30), ("everything", 12.5)):
        pod, _ = container_of(values)
        assert pod["terminationGracePeriodSeconds"] >= drain + 60
