"""Objects of prometheus-operator and KEDA are what their definitions allow.

`@kubernetes-models` has the definitions as validators, which find wrong and missing values, and as
types of TypeScript, which find fields that there are not.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helm.rendering import RELEASES, Object, objects, run, tool

KINDS = Path(__file__).parent / "kinds"
FOLDERS = {
    "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
    "keda.sh/v1alpha1": "@kubernetes-models/keda/keda.sh/v1alpha1",
}


def custom_objects() -> list[Object]:
    return [
        found for values in RELEASES for found in objects(values) if found["apiVersion"] in FOLDERS
    ]


@pytest.fixture(scope="module")
def node() -> str:
    """Node, where the definitions are installed, too."""
    if not (KINDS / "node_modules" / "@kubernetes-models").exists():
        pytest.skip("needs the packages of tests/helm/kinds: scripts/helm_tools.sh brings them")
    return tool("node")


def said_of(node: str, found: list[Object]) -> str:
    """What the validators say."""
    done = run(node, "check.mjs", input=json.dumps(found), cwd=KINDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def typed(found: list[Object]) -> str:
    """A program in which each object is a literal of its type; unknown fields are errors there."""
    lines = []
    for number, entry in enumerate(found):
        folder, kind = FOLDERS[entry["apiVersion"]], entry["kind"]
        lines.append(f'import type {{ I{kind} as T{number} }} from "{folder}/{kind}";')
        lines.append(f"export const o{number}: T{number} = {json.dumps(entry)};")
    return "\n".join(lines)


def errors_of_types(found: list[Object], folder: Path) -> str:
    """What the compiler says."""
    (folder / "node_modules").symlink_to(KINDS / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "objects.ts").write_text(typed(found))
    options = ("--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext")
    return run(KINDS / "node_modules" / ".bin" / "tsc", *options, "objects.ts", cwd=folder).stdout


def test_the_definitions_take_every_object(node):
    found = custom_objects()
    kinds = {entry["kind"] for entry in found}
    assert kinds == {"ServiceMonitor", "PrometheusRule", "ScaledObject", "TriggerAuthentication"}
    assert not said_of(node, found)


def test_no_object_has_a_field_that_there_is_not(node, tmp_path):
    """A cluster would drop it in silence."""
    assert not errors_of_types(custom_objects(), tmp_path)


def test_wrong_objects_are_found(node, tmp_path):
    """Checks that find nothing would pass as well."""
    (scaled, *_) = (entry for entry in custom_objects() if entry["kind"] == "ScaledObject")
    without = {**scaled, "spec": {"scaleTargetRef": scaled["spec"]["scaleTargetRef"]}}
    assert "triggers" in said_of(node, [without])
    unknown = {**scaled, "spec": {**scaled["spec"], "minReplicas": 1}}
    assert "minReplicas" in errors_of_types([unknown], tmp_path)
