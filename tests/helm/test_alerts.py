"""The alerts: Prometheus takes them, each fires when it should, and has a runbook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.rendering import CHART, NAMESPACE, ROOT, Object, parsed, run, tool

# With all that alerts are about, so that there is each of them.
VALUES = {
    "serviceMonitor": {"enabled": True, "token": {"existingSecret": "scrape"}},
    "prometheusRule": {"enabled": True},
    "tls": {"existingSecret": "tls"},
    "auth": {"existingSecret": "auth"},
    "backup": {"enabled": True},
    "config": {"history": "s3://bucket/jobline"},
}
OWN = 'namespace="jobs",job="jobs-jobline"'
ALERTS: Object = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))
CASES: Object = yaml.safe_load(Path(__file__).with_name("alerts.yaml").read_text(encoding="utf-8"))


def rules(folder: Path, values: Object) -> Object:
    """The rules that the chart makes of values."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    options = ("--namespace", NAMESPACE, "--values", file)
    done = run(tool("helm4"), "template", "jobs", CHART, *options)
    assert done.returncode == 0, done.stderr
    (found,) = (entry for entry in parsed(done.stdout) if entry["kind"] == "PrometheusRule")
    spec: Object = found["spec"]
    return spec


def names(spec: Object) -> set[str]:
    return {rule["alert"] for group in spec["groups"] for rule in group["rules"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the rules as Prometheus reads them."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules(tmp_path, VALUES)))
    return tmp_path


def with_own_labels(series: dict[str, str]) -> list[dict[str, str]]:
    """Series of a case with the labels that a scrape adds."""
    found = []
    for name, values in series.items():
        metric, _, labels = name.partition("{")
        found.append(
            {"series": f"{metric}{{{OWN},{labels or '}'}".replace(",}", "}"), "values": values}
        )
    return found


def test_of(alert: str, case: Object, *, fires: bool) -> Object:
    """A test of promtool: at the minute of a case its alert fires, or none does."""
    expected = {
        "exp_labels": {
            **dict(pair.split("=") for pair in OWN.replace('"', "").split(",")),
            **case.get("labels", {}),
            "severity": ALERTS[alert]["severity"],
        },
        "exp_annotations": {
            "summary": case["summary"],
            "runbook_url": f"{runbook()}#{alert.lower()}",
        },
    }
    look: Object = {
        "eval_time": f"{case['minute']}m",
        "alertname": alert,
        "exp_alerts": [expected] if fires else [],
    }
    series = with_own_labels(case["fires" if fires else "quiet"])
    return {"interval": "1m", "input_series": series, "alert_rule_test": [look]}


test_of.__test__ = False  # type: ignore[attr-defined]  # no test itself


def runbook() -> str:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return str(values["prometheusRule"]["runbookUrl"])


def test_prometheus_takes_the_rules(folder):
    done = run(tool("promtool"), "check", "rules", "--lint-fatal", folder / "rules.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def test_each_alert_has_a_case():
    assert CASES.keys() == ALERTS.keys()


@pytest.mark.parametrize("fires", [True, False], ids=["fires", "quiet"])
def test_alerts_fire_when_they_should(folder, fires):
    """The series, and what comes of them, are in alerts.yaml."""
    tests = [test_of(name, case, fires=fires) for name, case in CASES.items()]
    document: dict[str, Any] = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": tests,
    }
    (folder / "tests.yaml").write_text(yaml.safe_dump(document))
    done = run(tool("promtool"), "test", "rules", folder / "tests.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("last", [{"jobline_backup_last_success_timestamp_seconds": "0x3000"}, {}])
def test_a_server_that_never_had_a_backup_counts_from_its_start(folder, last):
    """Also where it could not ask its destination, and has no time of a backup at all."""
    fires = {"jobline_start_time_seconds": "60x3000", **last}
    case = {**CASES["JoblineBackupOld"], "fires": fires}
    tests = [test_of("JoblineBackupOld", case, fires=True)]
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.yaml").write_text(yaml.safe_dump(document))
    done = run(tool("promtool"), "test", "rules", folder / "tests.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_runbook():
    """A section of docs/operations.md, to which its annotation leads."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    headings = [
        line.removeprefix("### ") for line in page.splitlines() if line.startswith("### Jobline")
    ]
    assert sorted(headings) == sorted(ALERTS)


def test_there_are_no_alerts_about_what_is_turned_off(tmp_path):
    """An alert on a metric that there never is never fires, and looks as if it could."""
    only = {name: VALUES[name] for name in ("serviceMonitor", "prometheusRule")}
    assert names(rules(tmp_path, only)) == {n for n, alert in ALERTS.items() if "when" not in alert}
    rare = {**VALUES, "backup": {"enabled": True, "everySeconds": 0}}
    assert "JoblineBackupOld" not in names(rules(tmp_path, rare))


def test_old_is_a_backup_after_half_a_period_more(tmp_path):
    """A period, or the longest gap of a schedule, which takes its place."""

    def bound(backup: Object) -> str:
        found = rules(tmp_path, {**VALUES, "backup": {"enabled": True, **backup}})["groups"][0]
        (rule,) = (rule for rule in found["rules"] if rule["alert"] == "JoblineBackupOld")
        return str(rule["expr"].rpartition(" > ")[2])

    schedule = {"schedule": "0 3 * * *", "token": {"existingSecret": "saver"}, "everySeconds": 0}
    assert bound({"everySeconds": 3600}) == "1.5 * 3600"
    assert bound(schedule) == "1.5 * 86400"
    schedule["schedule"] = "0 3 * * 1-5"
    assert bound({**schedule, "longestGapSeconds": 259_200}) == "1.5 * 259200"


def test_values_change_single_alerts(tmp_path):
    changes = {
        "JoblineDown": {"enabled": False},
        "JoblineQueueWaits": {"threshold": 0.5, "for": "1m", "severity": "critical"},
        "JoblineAttemptsFail": {"threshold": 0.75, "minimum": 3},
    }
    spec = rules(tmp_path, {**VALUES, "prometheusRule": {"enabled": True, "alerts": changes}})
    assert names(spec) == ALERTS.keys() - {"JoblineDown"}
    (changed,) = (
        rule for rule in spec["groups"][0]["rules"] if rule["alert"] == "JoblineQueueWaits"
    )
    assert " > 0.5 " in changed["expr"]
    assert (changed["for"], changed["labels"]["severity"]) == ("1m", "critical")
    (both,) = (
        rule for rule in spec["groups"][0]["rules"] if rule["alert"] == "JoblineAttemptsFail"
    )
    assert " > 0.75 and " in both["expr"]
    assert both["expr"].endswith(">= 3")
