"""What Helm makes of the chart: objects of a values file, by each of the two Helms."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "jobline"
VALUES = Path(__file__).parent / "values"
GOLDEN = Path(__file__).parent / "golden"
HELMS = ("helm3", "helm4")
NAMESPACE = "jobs"
# The values files, and the releases that are made of them.
RELEASES = {
    "default": "jobs",
    "minimal": "jobline",
    "everything": "jobs",
    "tls-auth": "jobs",
    "tls-backup": "jobs",
    "external-secrets": "jobs",
    "workers-keda": "jobs",
    "odd-names": "7.up-2.0",
    "long-names": "a-release-whose-name-has-as-many-letters-as-it-may-53",
}

Object = dict[str, Any]


def tool(name: str) -> str:
    """The path of a tool, from .tools or the machine; skips the test where there is none."""
    path = ROOT / ".tools" / "bin" / name
    found = str(path) if path.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}: scripts/helm_tools.sh brings it")
    return found


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, whatever its code."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def rendered(values: Object, folder: Path, helm: str = "helm4") -> subprocess.CompletedProcess[str]:
    """What Helm says of values, which are written into a folder, whatever its code."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return run(tool(helm), "template", "jobs", CHART, "--values", file)


@cache
def manifest(helm: str, values: str) -> str:
    """The manifests of a values file, as text."""
    done = run(
        *(tool(helm), "template", RELEASES[values], CHART),
        *("--namespace", NAMESPACE, "--values", VALUES / f"{values}.yaml"),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def parsed(text: str) -> list[Object]:
    """The objects of a manifest."""
    return [found for found in yaml.load_all(text, Loader=yaml.CSafeLoader) if found]


@cache
def objects(values: str, helm: str = "helm4") -> list[Object]:
    """The objects of a values file, for reading."""
    return parsed(manifest(helm, values))


def values_of(values: str) -> Object:
    """A values file itself."""
    given: Object = yaml.safe_load((VALUES / f"{values}.yaml").read_text(encoding="utf-8"))
    return given


def of_kind(values: str, kind: str) -> list[Object]:
    """The objects of one kind."""
    return [found for found in objects(values) if found["kind"] == kind]


def pod_templates(values: str) -> Iterator[tuple[str, Object]]:
    """Name and template of each pod, with its metadata."""
    for found in objects(values):
        name = f"{found['kind']}/{found['metadata']['name']}"
        if found["kind"] == "Pod":
            yield name, found
        elif found["kind"] == "CronJob":
            yield name, found["spec"]["jobTemplate"]["spec"]["template"]
        elif found["kind"] in {"StatefulSet", "Deployment", "DaemonSet", "Job"}:
            yield name, found["spec"]["template"]


def everywhere(node: Any, *, key: str) -> Iterator[Any]:
    """Each value that stands under a key, at any depth."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            yield from everywhere(value, key=key)
    elif isinstance(node, list):
        for entry in node:
            yield from everywhere(entry, key=key)
