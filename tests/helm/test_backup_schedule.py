"""The CronJob of `backup.schedule`: it asks the server for a backup, and makes none itself."""

from __future__ import annotations

import pytest
import yaml

from tests.helm.rendering import (
    CHART,
    RELEASES,
    Object,
    everywhere,
    of_kind,
    parsed,
    run,
    tool,
    values_of,
)
from tests.helm.test_manifests import settings_of


def of_everything() -> Object:
    (found,) = of_kind("everything", "CronJob")
    return found


@pytest.mark.parametrize("values", RELEASES)
def test_there_is_one_where_values_have_a_schedule(values):
    """A schedule takes the place of the server's own period; else there would be two of them."""
    backup = values_of(values).get("backup", {})
    assert len(of_kind(values, "CronJob")) == int("schedule" in backup)
    if "schedule" in backup:
        assert settings_of(values)["backup_every_seconds"] == 0
    elif backup:
        assert settings_of(values)["backup_every_seconds"] > 0


def test_its_pod_has_no_file_of_the_server():
    """No other process may open them; neither has it the credentials of the destination."""
    pod = of_everything()["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["jobline", "backup"]
    assert not list(everywhere(pod, key="persistentVolumeClaim"))
    assert {volume["name"] for volume in pod["volumes"]} == {"tmp", "ca", "client"}
    assert "envFrom" not in container


def test_one_at_a_time_and_none_for_ever():
    """Two at once the server refuses; a pod that hangs would keep away all that follow."""
    spec = of_everything()["spec"]
    job = spec["jobTemplate"]["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["activeDeadlineSeconds"] > 0
    # After a hundred missed times that are not too old a CronJob is never started again; the most
    # that a schedule can have is one a minute.
    assert spec["startingDeadlineSeconds"] / 60 < 100


def test_the_server_lets_it_in():
    """As it does all pods of the namespace, over gRPC."""
    policies = [
        policy
        for policy in of_kind("everything", "NetworkPolicy")
        if policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "server"
    ]
    (policy,) = policies
    (rule,) = (rule for rule in policy["spec"]["ingress"] if {"podSelector": {}} in rule["from"])
    assert {"port": "grpc"} in rule["ports"]
    assert "namespace" not in of_everything()["metadata"], "that of the release"


@pytest.mark.parametrize(
    ("schedule", "gap"),
    [
        ("30 3 * * *", 0),
        ("0 */6 ? * ?", 0),
        ("@daily", 0),
        ("@hourly", 3_600),
        ("@midnight", 0),
        ("*/15 0-6,22 1,15 jan-mar MON-FRI", 31_622_400),
        ("0 4 ? * 0", 604_800),
        ("@weekly", 604_800),
    ],
)
def test_times_are_taken_as_they_are_written(schedule, gap, tmp_path):
    """Without a zone there is none: Kubernetes refuses an empty one. With days between two times
    the alert must know how many.
    """
    backup = {"enabled": True, "schedule": schedule, **({"longestGapSeconds": gap} if gap else {})}
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"backup": backup}))
    done = run(tool("helm4"), "template", "jobs", CHART, "--values", file)
    assert done.returncode == 0, done.stderr
    (found,) = (one for one in parsed(done.stdout) if one["kind"] == "CronJob")
    assert found["spec"]["schedule"] == schedule
    assert "timeZone" not in found["spec"]
