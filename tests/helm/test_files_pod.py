"""The pod and the commands of docs/operations.md by which the files of a server are restored."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path

import yaml

from jobline import AsyncClient
from jobline_server.testing import running_server
from tests.backing_up import backed_up
from tests.helm.pod_security import complaints
from tests.helm.rendering import NAMESPACE, ROOT, Object, of_kind, run, tool

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("**Stop, look, restore.**")[2].partition("\n**")[0]
BLOCKS = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
POD: Object = yaml.safe_load(re.findall(r"<<'EOF'\n(.*?)\nEOF\n", SECTION, re.DOTALL)[0])
EXEC = re.compile(r"^kubectl --namespace jobs exec (\S+) -- (.+?)(?:  +#.*)?$", re.MULTILINE)
COMMANDS = [shlex.split(command) for _, command in EXEC.findall(SECTION)]


def test_kubernetes_takes_the_pod(tmp_path):
    """Strict: no field that it does not know. A namespace of the restricted standard takes it."""
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(POD))
    for version in ("1.27.0", "1.37.0"):
        done = run(tool("kubernetes-validate"), "--strict", "--no-warn", "-k", version, file)
        assert done.returncode == 0, done.stdout + done.stderr
    assert not complaints(POD["spec"])


def test_the_pod_has_the_claims_of_the_server_where_the_server_has_them():
    """And its user, or it may not read the files."""
    (server,) = of_kind("tls-backup", "StatefulSet")
    spec, own = server["spec"]["template"]["spec"], POD["spec"]
    (container,), (of_server,) = own["containers"], spec["containers"]
    (template,) = server["spec"]["volumeClaimTemplates"]
    claims = {entry["name"]: entry for entry in own["volumes"]}
    data = f"{template['metadata']['name']}-{server['metadata']['name']}-0"
    assert claims["data"]["persistentVolumeClaim"]["claimName"] == data
    (backup,) = (entry for entry in spec["volumes"] if entry["name"] == "backup")
    assert claims["backup"] == backup
    assert all(mount in of_server["volumeMounts"] for mount in container["volumeMounts"])
    assert {mount["name"] for mount in container["volumeMounts"]} == claims.keys()
    assert own["securityContext"] == spec["securityContext"]
    assert container["securityContext"] == of_server["securityContext"]
    assert own["enableServiceLinks"] is False


def test_the_commands_are_about_that_pod_and_the_server():
    """First the server stops, and it starts again when the pod is gone."""
    lines = [line for block in BLOCKS for line in block.splitlines() if line.startswith("kubectl")]
    assert all(line.startswith(f"kubectl --namespace {NAMESPACE} ") for line in lines)
    assert {name for name, _ in EXEC.findall(SECTION)} == {POD["metadata"]["name"]}
    (server,) = of_kind("tls-backup", "StatefulSet")
    scale = f"kubectl --namespace {NAMESPACE} scale statefulset {server['metadata']['name']}"
    assert lines[0] == f"{scale} --replicas=0"
    assert lines[1].startswith(
        f"kubectl --namespace {NAMESPACE} wait --for=delete pod/{server['metadata']['name']}-0 "
    )
    assert lines[-2].startswith(
        f"kubectl --namespace {NAMESPACE} delete pod {POD['metadata']['name']}"
    )
    assert lines[-1] == f"{scale} --replicas=1"


async def test_the_commands_do_what_the_page_says(tmp_path: Path):
    """With real files in the place of the volumes: what is there is checked, moved away, and the
    newest backup is restored."""
    data = tmp_path / "jobline" / "data"
    to = tmp_path / "jobline-backup"
    data.parent.mkdir()
    async with (
        running_server(data, backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        await client.push("mail", {"n": 1})
        await backed_up(client)
        await client.push("mail", {"n": 2})
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert [command[:2] for command in COMMANDS] == [
        ["jobline", "verify"], ["jobline", "inspect"], ["mv", "/var/lib/jobline/data"],
        ["jobline", "restore"], ["rm", "-r"],
    ]  # fmt: skip
    for command in COMMANDS:
        here = [word.replace("/var/lib/", f"{tmp_path}/") for word in command]
        done = run(*here, env={**os.environ, "PATH": path})
        assert done.returncode == 0, (command, done.stdout + done.stderr)
    assert [entry.name for entry in data.parent.iterdir()] == ["data"]
    async with running_server(data) as server, AsyncClient(server.address) as client:
        assert (await client.queues.get("mail")).counts.ready == 1
