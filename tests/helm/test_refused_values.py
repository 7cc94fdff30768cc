"""Wrong values are refused, by name, before anything is sent to a cluster."""

from __future__ import annotations

import json
import runpy

import pytest

from tests.helm.rendering import CHART, HELMS, ROOT, Object, rendered

WORKER = {"repository": "w", "tag": "1"}
BAD: list[tuple[Object, str]] = [
    ({"replicas": 2}, "replicas"),
    ({"replicaCount": 2}, "replicaCount"),
    ({"imagee": {}}, "imagee"),
    ({"image": {"repo": "x"}}, "repo"),
    ({"image": {"repository": ""}}, "repository"),
    # A tag follows it: the kubelet would be asked for `jobline:0.1:0.1.0`.
    ({"image": {"repository": "jobline:0.1"}}, "repository"),
    ({"image": {"repository": "registry.example/jobline:0.1"}}, "repository"),
    ({"image": {"repository": "registry.example:5000/jobline:0.1"}}, "repository"),
    ({"image": {"repository": "registry.example:5000"}}, "repository"),
    ({"image": {"digest": "sha256:1"}}, "digest"),
    ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
    ({"imagePullSecrets": [{"name": "x"}]}, "imagePullSecrets"),
    ({"fullnameOverride": "Jobs"}, "fullnameOverride"),
    ({"fullnameOverride": "a" * 41}, "fullnameOverride"),
    ({"config": {"listen": "0.0.0.0:1"}}, "listen"),
    ({"config": {"tls_key": "/x"}}, "tls_key"),
    ({"config": {"max_payload": 1}}, "max_payload"),
    ({"config": {"shards": 2000}}, "shards"),
    ({"config": {"shards": "many"}}, "shards"),
    ({"config": {"max_payload_bytes": 1}}, "max_payload_bytes"),
    ({"config": {"max_payload_bytes": "64 apples"}}, "max_payload_bytes"),
    ({"config": {"log_level": "loud"}}, "log_level"),
    ({"config": {"uvloop": "yes"}}, "uvloop"),
    ({"persistence": {"size": "big"}}, "size"),
    # Bytes, which no volume has so few of; and what Kubernetes does not know.
    ({"persistence": {"size": 20}}, "size"),
    ({"persistence": {"size": "20"}}, "size"),
    ({"persistence": {"size": "20m"}}, "size"),
    ({"persistence": {"size": "20K"}}, "size"),
    ({"persistence": {"size": "20gi"}}, "size"),
    ({"backup": {"volume": {"size": 50}}}, "size"),
    ({"persistence": {"accessMode": "ReadWriteMany"}}, "accessMode"),
    ({"persistence": {"whenDeleted": "Maybe"}}, "whenDeleted"),
    ({"tls": {"secretName": "x"}}, "secretName"),
    ({"tls": {"existingSecret": "Über"}}, "existingSecret"),
    ({"auth": {"existingSecret": "x", "keys": "y"}}, "keys"),
    ({"backup": {"keep": -1}}, "keep"),
    ({"backup": {"everySeconds": 0.5}}, "everySeconds"),
    ({"backup": {"enabled": True, "schedule": "0 30 3 * * *"}}, "schedule"),
    ({"backup": {"enabled": True, "schedule": "TZ=UTC 30 3 * * *"}}, "schedule"),
    ({"backup": {"enabled": True, "schedule": "@every 1h"}}, "schedule"),
    ({"backup": {"enabled": True, "schedule": "30 3 * *"}}, "schedule"),
    ({"backup": {"enabled": True, "schedule": "@daily", "timeZone": "../UTC"}}, "timeZone"),
    ({"backup": {"longestGapSeconds": 0}}, "longestGapSeconds"),
    # Paths would be on the volume of the data, and lost with it, or on none that can be written.
    ({"backup": {"enabled": True, "to": "bucket/jobline"}}, "to"),
    ({"backup": {"enabled": True, "to": "/mnt/backup"}}, "to"),
    ({"backup": {"enabled": True, "to": "://bucket"}}, "to"),
    ({"service": {"grpcPort": 0}}, "grpcPort"),
    ({"service": {"type": "ExternalName"}}, "type"),
    ({"resources": {"limits": {"memory": "lots"}}}, "memory"),
    ({"resources": {"limits": {"memory": "1K"}}}, "memory"),
    ({"resources": {"limits": {"memory": "1mi"}}}, "memory"),
    ({"resources": {"limit": {}}}, "limit"),
    ({"extraEnv": [{"nam": "A"}]}, "nam"),
    ({"extraEnv": [{"name": "A", "value": 1}]}, "value"),
    ({"extraEnv": [{"name": "jobline_data", "value": "/tmp"}]}, "extraEnv has jobline_data"),
    ({"backup": {"to": "s3://key:se/cr:et@bucket"}}, "backup.to has a password"),
    ({"config": {"history": "sftp://me:1234@host/x"}}, "config.history has a password"),
    ({"podLabels": {"app.kubernetes.io/name": "x"}}, "podLabels has app.kubernetes.io/name"),
    (
        {"podLabels": {"app.kubernetes.io/component": "x"}},
        "podLabels has app.kubernetes.io/component",
    ),
    ({"podAnnotations": {"checksum/settings": "x"}}, "podAnnotations has checksum/settings"),
    (
        {"serviceMonitor": {"labels": {"helm.sh/chart": "x"}}},
        "serviceMonitor.labels has helm.sh/chart",
    ),
    (
        {"prometheusRule": {"labels": {"app.kubernetes.io/version": "x"}}},
        "prometheusRule.labels has app.kubernetes.io/version",
    ),
    (
        {"grafanaDashboard": {"labels": {"app.kubernetes.io/managed-by": "x"}}},
        "grafanaDashboard.labels has app.kubernetes.io/managed-by",
    ),
    (
        {"prometheusRule": {"alertLabels": {"severity": "page"}}},
        "prometheusRule.alertLabels has severity",
    ),
    ({"podSecurity": {"runAsUser": 0}}, "runAsUser"),
    ({"podSecurity": {"privileged": True}}, "privileged"),
    ({"securityContext": {}}, "securityContext"),
    ({"podAnnotations": {"a": 1}}, "podAnnotations"),
    ({"tolerations": [{"effects": "NoExecute"}]}, "effects"),
    ({"affinity": {"nodeAfinity": {}}}, "nodeAfinity"),
    ({"podDisruptionBudget": {"maxUnavailable": 1}}, "maxUnavailable"),
    ({"networkPolicy": {"clients": [{}]}}, "clients"),
    ({"networkPolicy": {"clients": [{"namespace": "x"}]}}, "namespace"),
    ({"serviceMonitor": {"interval": "often"}}, "interval"),
    ({"prometheusRule": {"alerts": {"JoblineIsSad": {}}}}, "JoblineIsSad"),
    ({"prometheusRule": {"alerts": {"JoblineDown": {"severity": "bad"}}}}, "severity"),
    (
        {
            "serviceMonitor": {"enabled": True},
            "prometheusRule": {"enabled": True, "alerts": {"JoblineDown": {"threshold": 1}}},
        },
        "prometheusRule.alerts.JoblineDown has no threshold",
    ),
    (
        {
            "serviceMonitor": {"enabled": True},
            "prometheusRule": {"enabled": True, "alerts": {"JoblineQueueWaits": {"minimum": 1}}},
        },
        "prometheusRule.alerts.JoblineQueueWaits has no minimum",
    ),
    (
        {"workers": {"mail": {"image": WORKER, "env": [{"name": "JOBLINE_SERVER", "value": "x"}]}}},
        "workers.mail.env has JOBLINE_SERVER, which the chart sets itself",
    ),
    ({"grafanaDashboard": {"label": {}}}, "label"),
    ({"workers": {"mail": {}}}, "image"),
    ({"workers": {"mail": {"image": {"tag": "1"}}}}, "repository"),
    ({"workers": {"mail": {"image": {"repository": "w"}}}}, "tag or a digest"),
    ({"workers": {"mail": {"image": {"repository": "w:1", "tag": "1"}}}}, "repository"),
    ({"workers": {"Mail": {"image": WORKER}}}, "Mail"),
    ({"workers": {"a" * 21: {"image": WORKER}}}, "a" * 21),
    ({"workers": {"mail": {"image": WORKER, "replicaz": 1}}}, "replicaz"),
    ({"workers": {"mail": {"image": WORKER, "runAsUser": 0}}}, "runAsUser"),
    ({"workers": {"mail": {"image": WORKER, "keda": {"metric": "length"}}}}, "metric"),
    ({"workers": {"mail": {"image": WORKER, "keda": {"queues": "x"}}}}, "queues"),
    (
        {"workers": {"mail": {"image": WORKER, "keda": {"activationBacklog": 1.5}}}},
        "activationBacklog",
    ),
    ({"workers": {"mail": {"image": WORKER, "maxUnavailable": "some"}}}, "maxUnavailable"),
]  # fmt: skip


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    ("values", "said"), BAD, ids=[f"{said}-{n}" for n, (_, said) in enumerate(BAD)]
)
def test_a_wrong_value_is_refused_by_name(helm, values, said, tmp_path):
    """Else it would be ignored in silence, or fail in a pod that nobody looks at."""
    done = rendered(values, tmp_path, helm)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "abfs://box@account/x",
        "s3://bucket/a:b",
        "hdfs://node:8020/a@b",
        "sftp://me@host/x",
        "simplecache::s3://b/x",
    ],
)
def test_a_url_without_a_password_is_taken(url, tmp_path):
    values = {"backup": {"enabled": True, "to": url}, "config": {"history": url}}
    done = rendered(values, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f'backup_to = "{url}"' in done.stdout


DECIDED = sorted(runpy.run_path(str(ROOT / "scripts" / "chart_values.py"))["OF_THE_CHART"])


@pytest.mark.parametrize("setting", [*DECIDED, "config"])
def test_variables_cannot_set_what_other_values_decide(setting, tmp_path):
    """A variable wins over the settings file: data would lie beside the volume, and be lost."""
    name = f"JOBLINE_{setting.upper()}"
    done = rendered({"extraEnv": [{"name": name, "value": "x"}]}, tmp_path)
    assert done.returncode != 0
    assert f"extraEnv has {name}, which other values of the chart decide" in done.stderr


def test_every_object_of_the_schema_is_closed_and_described():
    """Either its properties are named and there are no others, or all of them are of one kind."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))

    def check(node: object, path: str) -> None:
        if isinstance(node, list):
            for number, entry in enumerate(node):
                check(entry, f"{path}[{number}]")
        elif isinstance(node, dict):
            # In a flow mapping of YAML a comma ends a text, and the rest of it becomes a key.
            assert not [key for key in node if " " in key], path
            if node.get("type") == "object" and path != "$.properties.global":
                assert node.get("additionalProperties") is False or node["additionalProperties"], (
                    path
                )
            for name, entry in node.items():
                check(entry, f"{path}.{name}")

    check(schema, "$")
    for name, node in schema["properties"].items():
        assert "description" in node, name
