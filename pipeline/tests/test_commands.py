"""Commands say in one sentence what is wrong, without a traceback and without starting Spark."""

from __future__ import annotations

import sys

import pytest

from jobline_pipeline.cli import main


@pytest.fixture
def fails(monkeypatch, capsys):
    """Runs a command that fails; returns what it says on stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["jobline-pipeline", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 1
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return said

    return run


@pytest.mark.parametrize("command", ["run", "stream"])
def test_missing_history_is_said(fails, tmp_path, command):
    """With what to do about it."""
    said = fails(command, tmp_path / "nothing", "--tables", tmp_path)
    assert f"There is no {tmp_path}/nothing/events" in said
    assert "jobline-pipeline simulate" in said


@pytest.mark.parametrize(
    "command",
    [["report"], ["sql", "SELECT 1"], ["optimize"], ["vacuum"], ["retain", "--days", "3"]],
)
def test_missing_tables_are_said(fails, tmp_path, command):
    """Before Spark is started."""
    said = fails(*command, "--tables", tmp_path / "nothing")
    assert f"There are no tables in {tmp_path}/nothing" in said


@pytest.mark.parametrize("command", ["run", "stream"])
def test_tables_are_not_made_over_spark_connect(fails, history, tmp_path, monkeypatch, command):
    """Said before anything is read."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:1")
    assert "use spark-submit" in fails(command, history, "--tables", tmp_path)


def test_history_is_never_written_over(fails, history):
    """A simulated one could be mixed with a real one."""
    assert "has events already" in fails("simulate", history, "--jobs", 100)


def test_wrong_objectives_are_said(fails, history, tmp_path):
    """Before anything is read."""
    path = tmp_path / "objectives.toml"
    path.write_text("[[objective")
    assert "is not TOML" in fails("run", history, "--tables", tmp_path, "--objectives", path)


def test_missing_java_is_said(fails, history, tmp_path, monkeypatch):
    """With three ways to get one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("jobline_pipeline.session._is_provided", lambda: False)
    said = fails("run", history, "--tables", tmp_path / "tables")
    assert "Spark needs Java 17 or newer, and no Java was found" in said


def test_missing_jars_are_said(fails, history, tmp_path, monkeypatch):
    """With how to fetch them."""
    monkeypatch.setenv("JOBLINE_PIPELINE_JARS", str(tmp_path))
    monkeypatch.setattr("jobline_pipeline.session._is_provided", lambda: False)
    said = fails("run", history, "--tables", tmp_path / "tables")
    assert "python -m jobline_pipeline.jars" in said
