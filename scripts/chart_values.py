"""Write what the chart says of its values: `python scripts/chart_values.py [--check]`.

From deploy/helm/values.source.yaml come the chart's values.schema.json, its values.yaml, the
defaults of a worker and the tables of its README; the server's settings and the names of alerts
come from where they are defined. `--check` fails when a file says something different.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill, indent
from typing import Any

import yaml

from jobline_server.cli.described import choices
from jobline_server.config import Settings

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "deploy" / "helm" / "values.source.yaml"
CHART = ROOT / "deploy" / "helm" / "jobline"
LINE_MAX = 100
MADE = "Written by `make chart` from deploy/helm/values.source.yaml."
# Settings that follow from other values, or that mean nothing in a pod.
OF_THE_CHART = frozenset(
    {"data", "listen", "http", "unix_socket", "health_listen", "auth"}
    | {"tls_certificate", "tls_key", "tls_client_ca"}
    | {"backup_to", "backup_every_seconds", "backup_keep"}
)
# As pydantic reads sizes: 64MiB, 1.5 GB, 4096.
SIZE = r"^\s*\d*\.?\d+\s*([kKmMgGtT]?[iI]?[bB]?)\s*$"

Schema = dict[str, Any]


def source() -> Schema:
    """The schema as it is written by hand, with what the code has to say."""
    schema: Schema = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    schema["definitions"]["settings"] = settings_schema()
    schema["definitions"]["alerts"] = alerts_schema()
    return schema


def settings_schema() -> Schema:
    """The settings that `config` may have."""
    known = Settings.model_json_schema()["properties"]
    properties = {
        name: setting_schema(known[name], str(info.description), choices(info))
        for name, info in Settings.model_fields.items()
        if name not in OF_THE_CHART
    }
    return {"type": "object", "properties": properties}


def setting_schema(known: Schema, description: str, words: tuple[str, ...]) -> Schema:
    """One setting: its type and bounds. A size may be a number of bytes or a text."""
    if words:
        return {"enum": list(words), "description": description}
    if "ge" in known:
        bounds: Schema = {"minimum": known["ge"], "maximum": known["le"], "pattern": SIZE}
        return {"type": ["integer", "string"], **bounds, "description": description}
    kept: Schema = {key: known[key] for key in ("type", "minimum", "maximum") if key in known}
    if not kept:  # a path or nothing
        kept = {"type": "string"}
    return {**kept, "description": description}


def alerts_schema() -> Schema:
    """The changes of alerts, by the names that there are."""
    alerts = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))
    return {
        "type": "object",
        "properties": {name: {"$ref": "#/definitions/alert"} for name in alerts},
    }


def closed(node: Any) -> Any:
    """A schema whose objects take no other properties than those that they name."""
    if isinstance(node, list):
        return [closed(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    schema = {key: closed(value) for key, value in node.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        schema.setdefault("additionalProperties", False)
    return schema


def with_reference(schema: Schema, node: Schema) -> Schema:
    """A node with what it refers to; its own words win."""
    name = node.get("$ref", "").rpartition("/")[2]
    return {**(schema["definitions"][name] if name else {}), **node}


def is_described(schema: Schema, node: Schema) -> bool:
    """Whether the properties of a node are values of their own, with descriptions."""
    properties = node.get("properties", {}).values()
    return (
        bool(properties)
        and node.get("$ref") != "#/definitions/settings"
        and all("description" in with_reference(schema, entry) for entry in properties)
    )


def leaves(
    schema: Schema, node: Schema, prefix: str = "", default: Any = None
) -> Iterator[tuple[str, Any, str]]:
    """Name, default and description of each value under a node."""
    for name, entry in node["properties"].items():
        full = with_reference(schema, entry)
        given = (
            default[name] if isinstance(default, dict) and name in default else full.get("default")
        )
        if is_described(schema, full):
            yield from leaves(schema, full, f"{prefix}{name}.", given)
        else:
            yield prefix + name, given, full["description"]


def defaults(schema: Schema, node: Schema, given: Any = None) -> Any:
    """The values that a node has where nobody sets any."""
    if not is_described(schema, node):
        return node.get("default") if given is None else given
    chosen = node.get("default") if given is None else given
    chosen = chosen if isinstance(chosen, dict) else {}
    return {
        name: defaults(schema, with_reference(schema, entry), chosen.get(name))
        for name, entry in node["properties"].items()
    }


def values_yaml(schema: Schema, node: Schema, given: Any = None) -> str:
    """The values as a file, each with its description above it."""
    parts = []
    for name, entry in node["properties"].items():
        full = with_reference(schema, entry)
        value = given[name] if isinstance(given, dict) and name in given else full.get("default")
        comment = fill(
            full["description"], LINE_MAX - 4, initial_indent="# ", subsequent_indent="# "
        )
        if is_described(schema, full):
            inner = indent(values_yaml(schema, full, value), "  ")
            parts.append(f"{comment}\n{name}:\n{inner}")
        else:
            parts.append(f"{comment}\n{name}: {flow(value)}\n")
    return ("\n" if node is schema else "").join(parts)


def flow(value: Any) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(value, sort_keys=False, default_flow_style=True, width=1_000)
    return text.removesuffix("...\n").strip()


def table(schema: Schema, node: Schema) -> str:
    """The values as a table in Markdown."""
    rows = ["| value | default | |", "|---|---|---|"]
    for name, value, description in leaves(schema, node):
        shown = json.dumps(value, ensure_ascii=False)
        rows.append(f"| `{name}` | `{shown}` | {description.replace('|', '&#124;')} |")
    return "\n".join(rows)


def readme(schema: Schema) -> str:
    """The README of the chart with its tables renewed."""
    text = (CHART / "README.md").read_text(encoding="utf-8")
    worker = schema["definitions"]["worker"]
    for name, node in {"values": schema, "worker": worker}.items():
        begin, end = f"<!-- made from values.source.yaml: {name} -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + table(schema, node) + end + rest.partition(end)[2]
    return text


def files() -> dict[Path, str]:
    """What each file must say."""
    schema = source()
    made = f"# {MADE}\n"
    worker = schema["definitions"]["worker"]
    head = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Jobline",
        "$comment": MADE,
    }
    # Helm itself passes `global` to a chart that is part of another one.
    schema["properties"]["global"] = {"type": "object", "description": "Ignored."}
    closed_schema = json.dumps({**head, **closed(schema)}, indent=1, ensure_ascii=False)
    del schema["properties"]["global"]
    worker_defaults = yaml.safe_dump(defaults(schema, worker), sort_keys=False)
    return {
        CHART / "values.schema.json": closed_schema + "\n",
        CHART / "values.yaml": made + "\n" + values_yaml(schema, schema),
        CHART / "files" / "worker-defaults.yaml": made + worker_defaults,
        CHART / "README.md": readme(schema),
    }


def main() -> int:
    """Write the files, or say which ones are not as they should be."""
    check = "--check" in sys.argv[1:]
    stale = []
    for path, text in files().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name}: {'not as `make chart` writes it' if check else 'written'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
