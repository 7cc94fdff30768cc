"""All that the chart has, at once, on a real server: TLS, certificates of clients, tokens, probes,
Prometheus, a worker that KEDA scales, `helm test`, backups, and Secrets that are renewed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trustme

from tests.helm.pods import POD_ADDRESS, Release
from tests.helm.released import (
    AUTH,
    ISSUER,
    VALUES,
    WORKER,
    Authorities,
    Cluster,
    grpcurl_as_keda,
    released,
    trigger_of,
)
from tests.helm.rendering import Object, of_kind, run, tool
from tests.helm.sandbox import Running, ended
from tests.helm.test_real_server import probe
from tests.server.access import api_key, key

pytestmark = [pytest.mark.fault, pytest.mark.root]


@pytest.fixture(scope="module")
def authorities() -> Authorities:
    return Authorities(trustme.CA(), trustme.CA())


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, authorities: Authorities
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("release")
    with released(Release(VALUES, authorities.secrets(), folder), "first") as cluster:
        yield cluster


def test_the_image_serves_tls_by_the_fast_transport(cluster):
    """Nothing has to be asked for."""
    assert cluster.server.ready["transport"] == "native"


def test_probes_pass(cluster):
    _, container = cluster.release.pod_of("StatefulSet")
    for kind in ("startup", "readiness", "liveness"):
        assert probe(cluster.server, container[f"{kind}Probe"]) == "status: SERVING", kind


def test_the_pod_of_helm_test_finds_all_well(cluster):
    """With its token, and the certificate that the server asks for."""
    pod, container = cluster.release.pod_of("Pod")
    sandbox = cluster.release.sandbox(pod, container, cluster.image)
    done = run(*cluster.release.beside(cluster.server, sandbox, *container["command"]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "callers need a token or a certificate; reached by TLS" in done.stdout


def scrape(cluster: Cluster) -> str:
    """What Prometheus gets: the operator makes its job of the ServiceMonitor and the Services that
    it selects, and asks each pod behind them.
    """
    (monitor,) = of_kind(VALUES, "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    (service,) = (
        one
        for one in of_kind(VALUES, "Service")
        if monitor["spec"]["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()
    )
    (named,) = (port for port in service["spec"]["ports"] if port["name"] == endpoint["port"])
    _, container = cluster.release.pod_of("StatefulSet")
    (port,) = (
        port["containerPort"] for port in container["ports"] if port["name"] == named["targetPort"]
    )
    tls = endpoint["tlsConfig"]
    token = cluster.release.secrets[endpoint["authorization"]["credentials"]["name"]]
    done = cluster.program(
        *("curl", "--fail", "--silent", "--show-error"),
        *("--connect-to", f"::{POD_ADDRESS}:{port}", "--header", f"Host: {POD_ADDRESS}:{port}"),
        *("--cacert", cluster.secret(tls["ca"]["secret"])),
        *("--cert", cluster.secret(tls["cert"]["secret"])),
        *("--key", cluster.secret(tls["keySecret"])),
        *("--header", f"Authorization: Bearer {token['token'].decode()}"),
        f"{endpoint['scheme']}://{tls['serverName']}:{port}{endpoint['path']}",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_prometheus_scrapes_what_the_alerts_are_about(cluster):
    """By the name in the certificate, which is not that of the pod."""
    page = scrape(cluster)
    checked = run(tool("promtool"), "check", "metrics", input=page)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for name in ("jobline_tls_certificate_expiry_timestamp_seconds", "jobline_auth_refused_total"):
        assert f"\n{name}" in page


@pytest.mark.parametrize("what", ["no certificate", "one of another authority"])
def test_nobody_else_gets_in(cluster, what):
    """With the right token, and the authority that is to be trusted."""
    shown = {"JOBLINE_CLIENT_CERTIFICATE": "", "JOBLINE_CLIENT_KEY": ""}
    if what != "no certificate":
        _, given = trigger_of(cluster.release)
        other = {"name": "jobline-tls", "key": "tls.crt"}, {"name": "jobline-tls", "key": "tls.key"}
        assert given["tlsClientCert"] != other
        shown = dict(zip(shown, (str(cluster.secret(one)) for one in other), strict=True))
    done = cluster.program("jobline", "stats", JOBLINE_TOKEN=key("operator"), **shown)
    assert done.returncode != 0


@contextmanager
def worker_of(cluster: Cluster) -> Iterator[Running]:
    """Runs the container of the Deployment, with the program that its image has."""
    pod, container = cluster.release.pod_of("Deployment")
    package = cluster.release.folder / "app" / "mail"
    package.mkdir(parents=True, exist_ok=True)
    (package / "worker.py").write_text(WORKER)
    image = {"PATH": cluster.image["PATH"], "PYTHONPATH": "/app"}
    sandbox = cluster.release.sandbox(pod, container, image)
    sandbox.read_only["/app"] = package.parent
    words = [*container["command"], *container["args"]]
    command = cluster.release.beside(cluster.server, sandbox, *words)
    with ended(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as process:
        yield Running(process, {})


def test_a_job_brings_a_worker_which_works_and_is_sent_away(cluster):
    """KEDA hears of the job, asks how much there is, and the pod of the Deployment works on it."""
    (scaled,) = of_kind(VALUES, "ScaledObject")
    trigger, _ = trigger_of(cluster.release)
    reference = {
        "name": scaled["metadata"]["name"],
        "namespace": "jobs",
        "scalerMetadata": trigger["metadata"],
    }

    def ask(method: str, request: Object) -> Object:
        done = cluster.program(*grpcurl_as_keda(cluster, method, request))
        assert done.returncode == 0, done.stderr
        found: Object = json.loads(done.stdout)
        return found

    watch = grpcurl_as_keda(cluster, "StreamIsActive", reference)
    with ended(cluster.begin(*watch)) as watching:
        assert next_result(watching) is False
        assert ask("IsActive", reference) == {"result": False}
        queue = trigger["metadata"]["queue"]
        cluster.jobline(key("shop"), "push", queue, '{"to": "a@b.c"}', "--count", "3")
        assert next_result(watching) is True
        (spec,) = ask("GetMetricSpec", reference)["metricSpecs"]
        assert spec["targetSizeFloat"] == float(trigger["metadata"]["targetBacklogPerReplica"])
        request = {"scaledObjectRef": reference, "metricName": spec["metricName"]}
        (value,) = ask("GetMetrics", request)["metricValues"]
        assert value["metricValueFloat"] > 0
        with worker_of(cluster) as worker:
            assert worker.process.stdout is not None
            for _ in range(3):
                line = worker.process.stdout.readline()
                assert line == "sent to a@b.c as post@example.com debug\n"
            assert next_result(watching) is False, "five seconds after the last one"
            assert worker.stop() == 0
        assert ask("IsActive", reference) == {"result": False}


def next_result(stream: subprocess.Popen[str]) -> bool:
    """The next answer of a stream of grpcurl."""
    assert stream.stdout is not None
    text = ""
    while not text.endswith("}\n"):
        line = stream.stdout.readline()
        assert line, "the stream ended"
        text += line
    return bool(json.loads(text)["result"])


def test_a_token_of_an_issuer_whose_keys_are_in_the_secret_counts(cluster):
    """They are in a file beside that of `auth`, which names it."""
    token = ISSUER.token(seconds=600, roles=["watcher"])
    assert cluster.jobline(token, "stats")


def test_renewed_secrets_count_without_a_restart(cluster, authorities):
    """Kubelet swaps all files of a Secret at once: another certificate, and a key less."""
    assert cluster.jobline(key("guest"), "stats")
    release = cluster.release
    pod, container = release.pod_of("StatefulSet")
    renewed = Authorities(trustme.CA(), authorities.clients)
    release.secrets["jobline-tls"] = renewed.serving()
    without = AUTH.replace(api_key("guest", "watcher"), "")
    release.secrets["jobline-auth"]["auth.toml"] = without.encode()
    release.sandbox(pod, container, cluster.image)
    cluster.until_logged("certificate read")
    cluster.until_logged("access file read")
    assert cluster.jobline(key("operator"), "stats")
    refused = cluster.program("jobline", "stats", JOBLINE_TOKEN=key("guest"))
    assert "no key of the server is this one" in refused.stderr


def test_a_backup_restores_the_release_on_an_empty_volume(cluster, tmp_path):
    """The pod of the CronJob has the server make one; its token allows nothing else."""
    cluster.jobline(key("shop"), "push", "mail.high", '{"to": "a@b.c"}', "--count", "50")
    first = cluster.release
    pod, container = first.pod_of("CronJob")
    sandbox = first.sandbox(pod, container, cluster.image)
    done = run(*first.beside(cluster.server, sandbox, *container["command"]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert " is whole: " in done.stdout
    second = Release(VALUES, first.secrets, tmp_path)
    run("cp", "-a", first.claim("jobs-jobline-backup", 7070), second.claim("x", 7070).parent)
    pod, container = second.pod_of("StatefulSet")
    sandbox = second.sandbox(pod, container, cluster.image)
    done = run(
        *sandbox.command(["jobline", "restore", "/var/lib/jobline-backup", "/var/lib/jobline/data"])
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with released(second, "restored") as restored:
        found = restored.jobline(key("shop"), "queue", "get", "mail.high")
        assert found["counts"]["ready"] == 50
        assert restored.server.stop() == 0
