"""What the chart says of its values is made from one source, and from the server's own settings."""

from __future__ import annotations

import json
import runpy
import sys
from importlib.metadata import version
from typing import Any

import yaml

from jobline_server.config import Settings
from tests.helm.rendering import CHART, ROOT, run

SCRIPT = ROOT / "scripts" / "chart_values.py"


def schema_of_settings() -> dict[str, dict[str, Any]]:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = schema["definitions"]["settings"]["properties"]
    return found


def test_files_are_as_their_source_makes_them():
    """A new setting of the server needs `make chart`, and nothing by hand."""
    done = run(sys.executable, SCRIPT, "--check", cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_setting_is_a_value_or_decided_by_other_values():
    decided = runpy.run_path(str(SCRIPT))["OF_THE_CHART"]
    for name in Settings.model_fields:
        assert (name in schema_of_settings()) != (name in decided), name


def test_defaults_of_the_server_fit_the_schema_of_its_settings():
    """Bounds and types are those of the model."""
    for name, schema in schema_of_settings().items():
        default = Settings.model_fields[name].default
        if "enum" in schema:
            assert default in schema["enum"], name
        if isinstance(schema.get("minimum"), int | float):
            assert schema["minimum"] <= default <= schema["maximum"], name


def test_the_chart_has_the_version_of_the_server():
    """The image that is pulled where nobody names a tag."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == version("jobline-server")


def test_the_readme_names_every_value():
    text = (CHART / "README.md").read_text(encoding="utf-8")

    def leaves(node: object, prefix: str = "") -> list[str]:
        if (
            isinstance(node, dict)
            and node
            and prefix not in {"resources", "grafanaDashboard.labels"}
        ):
            return [
                leaf
                for name, entry in node.items()
                for leaf in leaves(entry, f"{prefix}.{name}".strip("."))
            ]
        return [prefix]

    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert all(f"| `{name}` |" in text for name in leaves(values))
