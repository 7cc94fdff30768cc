"""`jobline doctor`: what it says of backups, and of a server that is not healthy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobline.cli.exit_codes import Exit
from jobline_server.runtime.backups import BackupState
from jobline_server.testing import RunningServer, running_server_in_thread
from tests.cli.guarded import guarded_server, run

CHECK = ("doctor", "--read-only", "--json")


def found(*flags: str, code: Exit = Exit.OK) -> dict[str, Any]:
    """Returns what the doctor found, by what it looked at."""
    ended = run(*CHECK, *flags)
    assert ended.code == code, ended.out
    return {line["what"]: line for line in ended.lines}


def of_server(server: RunningServer, code: Exit = Exit.OK) -> dict[str, Any]:
    return found("--server", server.address, code=code)


def test_backups_that_fail_are_worth_attention_and_leave_the_server_well(tmp_path: Path) -> None:
    """The doctor was silent on them; with the reason, and how old the newest whole one is."""
    to = tmp_path / "to"
    with running_server_in_thread(tmp_path / "data", backup_to=str(to)) as server:
        none = of_server(server)["backups"]
        assert (none["health"], "no whole one is known" in none["found"]) == ("worrying", True)
        assert run("backup", "--server", server.address).code == Exit.OK
        whole = of_server(server)["backups"]
        assert whole["health"] == "fine"
        assert "the newest whole one is of 20" in whole["found"]
        to.rename(tmp_path / "elsewhere")
        to.write_text("in the way")
        assert run("backup", "--server", server.address).code == Exit.FAILED
        checked = of_server(server)
        assert server.server.backups is not None
        view = server.server.backups.view
        server.server.backups.view = replace(view, state=BackupState.RUNNING, name="next")
        running = of_server(server)["backups"]
    assert running["health"] == "worrying"
    assert running["found"].startswith("one is being made; the last try failed: [Errno ")
    failed = checked["backups"]
    assert failed["health"] == "worrying"
    assert failed["found"].startswith("the last try failed: [Errno ")
    assert "the newest whole one is of 20" in failed["found"]
    assert "jobline backup" in failed["advice"]
    assert checked["health"]["found"] == "SERVING"


def test_server_without_a_destination_makes_none(jobline: Any) -> None:
    lines = jobline(*CHECK).lines
    (backups,) = (line for line in lines if line["what"] == "backups")
    assert backups["health"] == "fine"
    assert "none are made" in backups["found"]


@pytest.mark.parametrize(("role", "sees"), [("read", False), ("root", True)])
def test_only_an_admin_hears_of_backups(tmp_path: Path, role: str, sees: bool) -> None:
    """The others may not ask, which is no fault."""
    with guarded_server(tmp_path, backup_to=str(tmp_path / "to")) as server:
        checked = found(*server.flags(role))
    assert ("backups" in checked) is sees


def test_server_whose_own_work_fails_is_not_said_to_start_or_stop(tmp_path: Path) -> None:
    """The doctor knew only these two reasons."""
    with running_server_in_thread(tmp_path / "data") as server:
        server.server.services.health.set_serving(False)
        health = of_server(server, Exit.FAILED)["health"]
    assert health["found"] == "NOT SERVING"
    assert "its own work fails again and again" in health["advice"]
    assert "/readyz" in health["advice"]
