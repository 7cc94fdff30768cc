"""What the chart makes, beside what it made before, by Helm 3 and Helm 4."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.helm.rendering import (
    CHART,
    GOLDEN,
    HELMS,
    NAMESPACE,
    RELEASES,
    VALUES,
    Object,
    manifest,
    objects,
    of_kind,
    run,
    tool,
)

NEW = "GOLDEN"
# Thousands of lines that no value changes.
DASHBOARD = re.compile(r"(\.json: \|\n)(?:    .*\n)+")


def settings_of(values: str) -> Object:
    """The settings file of the server, as it reads it."""
    (text,) = (
        found["data"]["jobline.toml"]
        for found in of_kind(values, "ConfigMap")
        if "jobline.toml" in found["data"]
    )
    return tomllib.loads(text)


def by_name(found: list[Object]) -> dict[str, Object]:
    named = {f"{entry['kind']}/{entry['metadata']['name']}": entry for entry in found}
    assert len(named) == len(found), "two objects have one name"
    return named


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("values", RELEASES)
def test_helm_finds_nothing_to_complain_about(helm, values):
    """`lint --strict`: warnings are errors."""
    done = run(tool(helm), "lint", "--strict", CHART, "--values", VALUES / f"{values}.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", RELEASES)
def test_manifests_are_as_they_were(values):
    """What a change of the chart changes in a cluster is part of its diff. `make helm-golden`
    writes the files anew.
    """
    golden = GOLDEN / f"{values}.yaml"
    text = DASHBOARD.sub(r"\1    (files/dashboard.json)\n", manifest("helm4", values))
    if os.environ.get(NEW):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), f"{golden.name}: see `make helm-golden`"


@pytest.mark.parametrize("values", RELEASES)
def test_both_helms_make_the_same(values):
    """Helm 3 and 4 differ in the order of objects alone."""
    assert by_name(objects(values, "helm3")) == by_name(objects(values, "helm4"))


def notes_of(file: Path) -> str:
    """The notes of a values file. A dry run on the client makes them, which `template` leaves out.
    Helm 3 asks a cluster even then.
    """
    done = run(
        *(tool("helm4"), "install", "jobs", CHART, "--namespace", NAMESPACE),
        *("--dry-run=client", "--values", file),
        env={**os.environ, "KUBECONFIG": "/nonexistent"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("NOTES:")[2]


def test_the_notes_say_how_to_reach_the_server():
    notes = notes_of(VALUES / "tls-auth.yaml")
    assert (
        'grpcurl -H "authorization: Bearer $JOBLINE_TOKEN" -authority jobs-jobline.jobs.svc'
        in notes
    )
    assert "There are no backups" in notes
    assert "send no token" not in notes


def test_the_notes_say_that_tokens_need_tls(tmp_path):
    """Else clients in other pods end with an error, and nobody knows why."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"auth": {"existingSecret": "keys"}}))
    notes = notes_of(file)
    assert "Jobline send no token to another host without TLS: set tls.existingSecret" in notes


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"auth": {"existingSecret": "keys"}}, True),
        ({"auth": {"existingSecret": "keys"}, "tls": {"existingSecret": "own"}}, True),
        ({}, False),
        (
            {
                "auth": {"existingSecret": "keys"},
                "tls": {
                    "existingSecret": "own",
                    "clientCa": {"existingSecret": "theirs"},
                    "clientCertificate": {"existingSecret": "mine"},
                },
            },
            False,
        ),
    ],
)
def test_the_notes_say_that_helm_test_needs_a_token(values, said, tmp_path):
    """Where it has nothing else to show."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    assert ("`helm test` fails without a token: set tests.token" in notes_of(file)) is said
    assert "`helm test` fails" not in notes_of(VALUES / "tls-auth.yaml")


@pytest.mark.parametrize(
    ("limit", "waiting", "said"),
    [
        ("4Gi", None, True),
        ("4.5Gi", None, True),
        ("4833M", None, False),
        ("5Gi", None, False),
        ("5000000000", None, False),
        (4_000_000_000, None, True),
        ("1.5Gi", 1_073_741_824, True),
        ("2Gi", 1_073_741_824, False),
        ("2Gi", "1 gb", False),
        ("2Gi", "1.5GiB", True),
        ("790Mi", "300m", True),
        ("900Mi", "300m", False),
    ],
)
def test_the_notes_say_that_a_limit_of_memory_is_low(limit, waiting, said, tmp_path):
    """The server would be killed with as many jobs as it is told to take."""
    values: Object = {"resources": {"limits": {"memory": limit}}}
    if waiting is not None:
        values["config"] = {"max_waiting_bytes": waiting}
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    assert ("resources.limits.memory is not above" in notes_of(file)) is said


@pytest.mark.parametrize("shown", ["", "mine"])
def test_the_notes_say_where_the_certificate_of_a_client_comes_from(shown, tmp_path):
    """Out of the Secret of the chart's own clients where there is one, else from who signs them."""
    tls = {
        "existingSecret": "own",
        "clientCa": {"existingSecret": "theirs"},
        "clientCertificate": {"existingSecret": shown},
    }
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"tls": tls}))
    before, _, call = notes_of(file).partition("  grpcurl ")
    assert call.startswith("-cacert ca.crt -cert client.crt -key client.key ")
    if shown:
        template = """--output 'go-template={{index .data "tls.%s" | base64decode}}' >client.%s"""
        for part in ("crt", "key"):
            assert f"get secret mine {template % (part, part)}" in before
    else:
        assert "an authority in the Secret theirs signed for you" in before


def test_the_schemas_of_kubernetes_take_every_object(tmp_path):
    """Strict: no field that Kubernetes does not know. The other kinds are in test_kinds.py."""
    files: list[Path] = []
    for values in RELEASES:
        for number, found in enumerate(objects(values)):
            if "coreos" not in found["apiVersion"] and "keda" not in found["apiVersion"]:
                file = tmp_path / f"{values}-{number}.json"
                file.write_text(json.dumps(found))
                files.append(file)
    for version in ("1.27.0", "1.37.0"):
        done = run(tool("kubernetes-validate"), "--strict", "--no-warn", "-k", version, *files)
        failed = [line for line in done.stdout.splitlines() if "INFO" not in line]
        assert done.returncode == 0, "\n".join(failed) + done.stderr


def test_the_settings_of_values_arrive_as_they_were_written():
    """Numbers stay numbers, also long ones; texts keep their quotes."""
    given = yaml.safe_load((VALUES / "everything.yaml").read_text())["config"]
    assert given.items() <= settings_of("everything").items()
    assert settings_of("tls-backup")["backup_every_seconds"] == 3600
    assert settings_of("odd-names")["http_cors_origins"] == 'https://a.example, http://"b"'


def test_a_change_of_a_setting_restarts_the_server():
    """The pod has a sum of the settings, and nothing that an upgrade of the chart alone changes."""
    (default,), (other,) = of_kind("default", "StatefulSet"), of_kind("everything", "StatefulSet")
    sums = [
        found["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]
        for found in (default, other)
    ]
    assert sums[0] != sums[1]
    assert "helm.sh/chart" not in default["spec"]["template"]["metadata"]["labels"]
