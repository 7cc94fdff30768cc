"""Where Java comes from."""

from __future__ import annotations

import subprocess

import pytest

from jobline_pipeline.java import _WRAPPER, find_java
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
    assert find_java(tmp_path) == tmp_path / "mine"


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
