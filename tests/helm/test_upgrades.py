"""An upgrade from one values file to another changes nothing that Kubernetes lets nobody change."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import yaml

from tests.helm.rendering import CHART, NAMESPACE, Object, parsed, run, tool

# A release as it may grow, in any order: everything but the volume of its data and its name.
STAGES: dict[str, Object] = {
    "bare": {},
    "tls": {"tls": {"existingSecret": "tls"}, "auth": {"existingSecret": "auth"}},
    "backup": {"backup": {"enabled": True}, "podLabels": {"a": "b"}, "config": {"shards": 4}},
    "other": {
        "image": {"tag": "9.9.9"},
        "service": {"grpcPort": 1, "httpPort": 2},
        "podSecurity": {"runAsUser": 1},
        "serviceAccount": {"create": False},
        "podDisruptionBudget": {"enabled": True},
        "serviceMonitor": {"enabled": True},
        "workers": {"mail": {"image": {"repository": "mail", "tag": "1"}}},
    },
    "worker": {
        "workers": {
            "mail": {
                "image": {"repository": "post", "tag": "2"},
                "podAnnotations": {"a": "b"},
                "maxUnavailable": 1,
                "keda": {"enabled": True},
            }
        }
    },
}
# https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/: what may be changed.
CHANGEABLE = {
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds",
    "persistentVolumeClaimRetentionPolicy",
}  # fmt: skip


def immutable(found: Object) -> Any:
    """What of an object cannot be changed."""
    spec = found.get("spec", {})
    match found["kind"]:
        case "StatefulSet":
            return {key: value for key, value in spec.items() if key not in CHANGEABLE}
        case "Deployment":
            return spec["selector"]
        case "PersistentVolumeClaim":
            return {key: value for key, value in spec.items() if key != "resources"}
        case "Service":
            return spec.get("clusterIP")
    return None


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Object]]:
    """The objects of each stage by kind and name."""
    made = {}
    for stage, values in STAGES.items():
        file = tmp_path_factory.mktemp("stages") / f"{stage}.yaml"
        file.write_text(yaml.safe_dump(values))
        done = run(
            tool("helm4"), "template", "jobs", CHART, "--namespace", NAMESPACE, "--values", file
        )
        assert done.returncode == 0, done.stderr
        found = parsed(done.stdout)
        made[stage] = {f"{entry['kind']}/{entry['metadata']['name']}": entry for entry in found}
    return made


@pytest.mark.parametrize(("before", "after"), list(permutations(STAGES, 2)))
def test_immutable_fields_stay(stages, before, after):
    """Helm's upgrade would stop half-way, with an error of Kubernetes."""
    kept = stages[before].keys() & stages[after].keys()
    assert "StatefulSet/jobs-jobline" in kept
    for name in kept:
        assert immutable(stages[before][name]) == immutable(stages[after][name]), name


def test_a_new_version_of_the_chart_changes_no_immutable_field(stages, tmp_path):
    """The version is in labels, and labels of a claim's template are immutable."""
    import shutil  # noqa: PLC0415

    copy = tmp_path / "jobline"
    shutil.copytree(CHART, copy)
    description = yaml.safe_load((copy / "Chart.yaml").read_text())
    description |= {"version": "7.0.0", "appVersion": "8.0.0"}
    (copy / "Chart.yaml").write_text(yaml.safe_dump(description))
    done = run(tool("helm4"), "template", "jobs", copy, "--namespace", NAMESPACE)
    for found in parsed(done.stdout):
        before = stages["bare"][f"{found['kind']}/{found['metadata']['name']}"]
        assert immutable(before) == immutable(found)
