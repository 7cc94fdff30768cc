"""The image: its steps, done in clean roots, and the server that comes of them."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.helm.image import DOCKERFILE, Stage, machine, stages
from tests.helm.rendering import ROOT, of_kind, run, tool
from tests.helm.sandbox import Sandbox, serving

DATA = "/var/lib/jobline"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The last stage, built."""
    if os.geteuid() != 0:
        pytest.skip("needs root, as the steps of a build do")
    tool("bwrap")
    return stages(tmp_path_factory.mktemp("image"))[-1]


@pytest.fixture
def said(tmp_path: Path) -> list[Stage]:
    """What the Dockerfile says, with nothing done."""
    return stages(tmp_path, build=False)


def test_hadolint_finds_nothing():
    done = run(tool("hadolint"), DOCKERFILE)
    assert done.returncode == 0, done.stdout


def test_the_last_stage_has_no_step_that_could_bring_a_compiler(said):
    """It copies what another stage made, onto the slim image."""
    *_, last = said
    assert len(said) > 1
    assert last.base.endswith("-slim")
    assert "RUN" not in last.said
    assert all(value.startswith("--from=") for value in last.said["COPY"])


def test_the_server_is_the_first_process_of_a_user_that_is_a_number(said):
    """A shell between would keep SIGTERM for itself, and a name may be that of root."""
    *_, last = said
    assert json.loads(last.said["ENTRYPOINT"][0]) == ["python", "-m", "jobline_server"]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", last.said["USER"][0])
    assert last.said["STOPSIGNAL"] == ["SIGTERM"]
    assert last.said["HEALTHCHECK"] == ["NONE"]
    assert DATA in last.said["VOLUME"][0]
    assert "CMD" not in last.said


def test_the_chart_and_the_image_agree(said):
    """On the user, on where data is, on the ports, and on the version."""
    *_, last = said
    (server,) = of_kind("default", "StatefulSet")
    pod = server["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert last.said["USER"] == [
        f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['fsGroup']}"
    ]
    assert DATA in {mount["mountPath"] for mount in container["volumeMounts"]}
    ports = {port["containerPort"] for port in container["ports"]}
    assert ports == {int(port) for port in last.said["EXPOSE"][0].split()}
    assert container["image"].endswith(f":{last.environment['VERSION']}")
    assert "command" not in container, "the chart would not run what the image does"
    # Variables win over the chart's file of settings, so they must say the same.
    (text,) = (found["data"]["jobline.toml"] for found in of_kind("default", "ConfigMap"))
    settings = tomllib.loads(text)
    for name, value in last.environment.items():
        if name.startswith("JOBLINE_"):
            assert settings[name.removeprefix("JOBLINE_").lower()] == value


@pytest.mark.root
def test_the_server_of_the_image_runs_on_a_root_that_is_read_only(image, tmp_path):
    """As the image's user and process 1; it answers, and stops in order when it is told to."""
    data = tmp_path / "data"
    data.mkdir()
    uid = int(image.said["USER"][0].split(":")[0])
    run("cp", "-a", f"{image.inside(DATA)}/.", data)
    os.chown(data, uid, uid)
    sandbox = Sandbox(
        uid,
        {**machine(), "/opt/jobline": image.root / "opt" / "jobline"},
        {DATA: data},
        image.environment,
    )
    words = json.loads(image.said["ENTRYPOINT"][0])
    with serving(sandbox, words, tmp_path / "log") as running:
        status = running.status()
        assert status["Uid"].split() == [str(uid)] * 4
        assert status["NSpid"].split()[1] == "1"
        assert running.ready["transport"] == "native"
        listed = running.beside(tool("grpcurl"), "-plaintext", "127.0.0.1:7070", "list")
        assert "jobline.v1.JobService" in listed.stdout, listed.stderr
        assert running.stop() == 0
    log = (tmp_path / "log").read_text()
    assert "Read-only file system" not in log
    assert (data / "data" / "jobline.db").stat().st_uid == uid


@pytest.mark.root
def test_the_image_has_the_command_line_that_helm_test_runs(image):
    """And no pip, nor bytecode that would have to be written at each start."""
    environment = image.root / "opt" / "jobline"
    (pod,) = of_kind("default", "Pod")
    program = pod["spec"]["containers"][0]["command"][0]
    assert (environment / "bin" / program).read_text().startswith("#!/opt/jobline/bin/python")
    assert not list(environment.rglob("pip"))
    (package,) = environment.rglob("jobline_server/__init__.py")
    assert list((package.parent / "__pycache__").iterdir())
    assert image.inside(DATA).stat().st_uid == 7070


def test_what_is_copied_is_not_kept_out_of_the_build():
    ignored = (ROOT / ".dockerignore").read_text().split()
    for line in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE.read_text(), re.MULTILINE):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists()
            assert name not in ignored
