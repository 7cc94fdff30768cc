"""Where Java comes from."""

from __future__ import annotations

import subprocess

import pytest

from jobline_pipeline.java import _WRAPPER, _version_of, find_java
from jobline_pipeline.problems import PipelineError


def java(folder, version):
    """Makes a `java` that says it has a version."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return folder


def test_java_home_comes_first(tmp_path, monkeypatch):
    """Who sets it means it."""
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "mine", "21.0.1")))
    home = find_java(tmp_path / "cache")
    assert str(tmp_path / "mine/bin/java") in (home / "bin/java").read_text()
    assert _version_of(home / "bin/java") == 21


def test_java_is_wrapped_once(tmp_path, monkeypatch):
    """A process that starts Spark twice finds the wrapper as its JAVA_HOME."""
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "mine", "21.0.1")))
    home = find_java(tmp_path / "cache")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java(tmp_path / "cache") == home


def test_a_home_that_cannot_be_written_to_does_not_matter(tmp_path, monkeypatch):
    """Java itself will do, with a line of warning."""
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "mine", "21.0.1")))
    (tmp_path / "cache").write_text("a file")
    assert find_java(tmp_path / "cache") == tmp_path / "mine"


def test_old_java_is_refused(tmp_path, monkeypatch):
    """Spark would end with a stack of its own."""
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin") + ":/bin")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("shutil.which", lambda _: str(tmp_path / "old" / "bin" / "java"))
    with pytest.raises(PipelineError, match="the Java that is installed is older"):
        find_java(tmp_path)


def test_wrapper_drops_one_flag(tmp_path):
    """All other arguments arrive as they are."""
    wrapper = tmp_path / "java"
    flag = "--add-modules=jdk.incubator.vector"
    wrapper.write_text(_WRAPPER.format(flag=flag, java="/bin/echo"))
    said = subprocess.run(
        ["/bin/bash", wrapper, "-Xmx1g", flag, "a b"], capture_output=True, text=True, check=True
    )
    assert said.stdout == "-Xmx1g a b\n"
