"""Pods as kubelet makes them: volumes of Secrets, ConfigMaps and claims, variables, and names of
Services, for the objects that Helm rendered of one file of values.

All pods are in one network, whose addresses are of its loopback: a pod has one, a Service another.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.helm.image import stages
from tests.helm.rendering import ROOT, Object, objects, of_kind, pod_templates
from tests.helm.sandbox import Running, Sandbox

# Where the image has its environment; here it is that of the checkout.
ENVIRONMENT = "/opt/jobline"
POD_ADDRESS = "127.1.0.7"
SERVICE_ADDRESS = "127.2.0.{number}"
Secrets = dict[str, dict[str, bytes]]


@dataclass
class Release:
    """The rendered objects, the Secrets that the values say exist, and where volumes are."""

    values: str
    secrets: Secrets
    folder: Path

    def pod_of(self, kind: str, name: str = "") -> tuple[Object, Object]:
        """The pod of an object, and its container."""
        (pod,) = (
            template["spec"]
            for found, template in pod_templates(self.values)
            if found == f"{kind}/{name}" or (not name and found.startswith(f"{kind}/"))
        )
        (container,) = pod["containers"]
        return pod, container

    def sandbox(self, pod: Object, container: Object, image: dict[str, str]) -> Sandbox:
        """What a container of a pod can see; `image`: the variables of its image."""
        user: int = pod["securityContext"]["runAsUser"]
        made = Sandbox(user, self._machine(), {}, {**image, **self.variables(container)})
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for mount in container["volumeMounts"]:
            # A claim of a StatefulSet's template is no volume of its pod.
            volume = volumes.get(mount["name"], {"persistentVolumeClaim": {}})
            if "emptyDir" in volume:
                assert mount["mountPath"] == "/tmp", "a sandbox has one there"
            elif "persistentVolumeClaim" in volume:
                name = volume["persistentVolumeClaim"].get("claimName", mount["name"])
                group = pod["securityContext"]["fsGroup"]
                made.writable[mount["mountPath"]] = self.claim(name, group)
            else:
                made.read_only[mount["mountPath"]] = self.files_of(volume)
        return made

    def beside(self, running: Running, sandbox: Sandbox, *words: str | Path) -> list[str]:
        """The command line of a program of another pod, in the network of one that runs."""
        sandbox.network = True
        network = ("nsenter", f"--net=/proc/{running.pid}/ns/net")
        return [*network, *sandbox.command([str(word) for word in words])]

    def claim(self, name: str, group: int) -> Path:
        """A volume as a driver makes it, which kubelet has given to the group of the pod."""
        folder = self.folder / "claims" / name
        for path in (folder, folder / "lost+found"):
            if not path.exists():
                path.mkdir(parents=True)
                os.chown(path, 0, group)
                path.chmod(0o2775 if path == folder else 0o2770)
        return folder

    def files_of(self, volume: Object) -> Path:
        """The volume of a Secret or a ConfigMap, as it is now."""
        folder: Path = self.folder / "volumes" / volume["name"]
        if "secret" in volume:
            source, name = volume["secret"], volume["secret"]["secretName"]
            content = self.secrets[name]
        else:
            source, name = volume["configMap"], volume["configMap"]["name"]
            content = self._config_map(name)
        # A key that is not there keeps a pod from its start.
        items = source.get("items") or [{"key": key, "path": key} for key in content]
        write_volume(folder, {item["path"]: content[item["key"]] for item in items})
        return folder

    def variables(self, container: Object) -> dict[str, str]:
        """The variables of a container: those of whole Secrets first, as others win over them."""
        found: dict[str, str] = {}
        for entry in container.get("envFrom", []):
            secret = self.secrets[entry["secretRef"]["name"]]
            found |= {key: value.decode() for key, value in secret.items()}
        for entry in container.get("env", []):
            given = entry.get("valueFrom", {})
            if "secretKeyRef" in given:
                reference = given["secretKeyRef"]
                value = self.secrets[reference["name"]][reference["key"]].decode()
            else:
                value = entry.get("value", "of the node")
            found[entry["name"]] = value
        return found

    def forwards(self) -> list[str]:
        """What the network does for Services: `address:port=address:port`."""
        _, server = self.pod_of("StatefulSet")
        ports = {port["name"]: port["containerPort"] for port in server["ports"]}
        return [
            f"{address}:{port['port']}={POD_ADDRESS}:{ports[port['targetPort']]}"
            for address, service in self._services()
            for port in service["spec"]["ports"]
        ]

    def _services(self) -> list[tuple[str, Object]]:
        """Services with an address; a headless one has that of the pod."""
        found = [
            one for one in of_kind(self.values, "Service") if one["spec"].get("clusterIP") != "None"
        ]
        return [(SERVICE_ADDRESS.format(number=number), one) for number, one in enumerate(found, 1)]

    def _config_map(self, name: str) -> dict[str, bytes]:
        (found,) = (
            one["data"]
            for one in objects(self.values)
            if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", name)
        )
        return {key: str(text).encode() for key, text in found.items()}

    def _machine(self) -> dict[str, Path]:
        """What stands for the image, and the names of Services."""
        hosts, switch = self.folder / "hosts", self.folder / "nsswitch.conf"
        names = [
            f"{address} {service['metadata']['name']}.{namespace}.svc"
            for address, service in self._services()
            for namespace in ("jobs",)
        ]
        hosts.write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
        switch.write_text("hosts: files\n")
        return {
            str(ROOT): ROOT,
            ENVIRONMENT: ROOT / ".venv",
            "/etc/hosts": hosts,
            "/etc/nsswitch.conf": switch,
        }


def write_volume(folder: Path, files: dict[str, bytes]) -> None:
    """Writes the files of a volume as kubelet does, which swaps all of them at once: they are links
    into a folder of one moment, to which `..data` leads.
    """
    folder.mkdir(parents=True, exist_ok=True)
    moment = Path(tempfile.mkdtemp(prefix="..2026_", dir=folder))
    moment.chmod(0o755)
    for name, content in files.items():
        (moment / name).write_bytes(content)
        (moment / name).chmod(0o644)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    before = (folder / "..data").resolve() if (folder / "..data").exists() else None
    (folder / "..data_tmp").symlink_to(moment.name)
    (folder / "..data_tmp").rename(folder / "..data")
    if before is not None:
        shutil.rmtree(before)


def variables_of_the_image(folder: Path) -> dict[str, str]:
    """What the Dockerfile says of the environment."""
    *_, last = stages(folder, build=False)
    return last.environment
