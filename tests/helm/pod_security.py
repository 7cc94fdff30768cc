"""The restricted pod security standard, as rules over a pod's spec.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/, its controls
"Baseline" and "Restricted" in the order of that page. Two things are added that the standard leaves
open: a root file system that is read-only, and no token of a service account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Spec = dict[str, Any]
Rule = Callable[[Spec], Iterator[str]]

VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
    "projected", "secret",
}  # fmt: skip
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
}  # fmt: skip
SELINUX_TYPES = {
    None,
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
}


def containers(spec: Spec) -> Iterator[tuple[str, Spec, Spec]]:
    """Name, container and security context of each container, of all three kinds."""
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind, []):
            yield container["name"], container, container.get("securityContext", {})


def contexts(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """Each security context: the pod's own and those of its containers."""
    yield "pod", spec.get("securityContext", {})
    for name, _, context in containers(spec):
        yield name, context


def host_namespaces(spec: Spec) -> Iterator[str]:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            yield name


def host_processes(spec: Spec) -> Iterator[str]:
    for name, context in contexts(spec):
        if context.get("windowsOptions", {}).get("hostProcess"):
            yield f"{name}: hostProcess"


def privileged(spec: Spec) -> Iterator[str]:
    for name, _, context in containers(spec):
        if context.get("privileged"):
            yield f"{name}: privileged"


def host_ports(spec: Spec) -> Iterator[str]:
    for name, container, _ in containers(spec):
        for port in container.get("ports", []):
            if port.get("hostPort"):
                yield f"{name}: hostPort"


def host_of_probes(spec: Spec) -> Iterator[str]:
    for name, container, _ in containers(spec):
        probes = [
            container.get(f"{kind}Probe", {}) for kind in ("liveness", "readiness", "startup")
        ]
        for action in ("httpGet", "tcpSocket"):
            if any(probe.get(action, {}).get("host") for probe in probes):
                yield f"{name}: host of a probe"


def volume_types(spec: Spec) -> Iterator[str]:
    for volume in spec.get("volumes", []):
        for kind in volume.keys() - {"name"} - VOLUMES:
            yield f"volume {volume['name']}: {kind}"


def apparmor_selinux_proc(spec: Spec) -> Iterator[str]:
    for name, context in contexts(spec):
        if context.get("appArmorProfile", {}).get("type") == "Unconfined":
            yield f"{name}: appArmorProfile"
        options = context.get("seLinuxOptions", {})
        if options.get("type") not in SELINUX_TYPES or options.get("user") or options.get("role"):
            yield f"{name}: seLinuxOptions"
        if context.get("procMount", "Default") != "Default":
            yield f"{name}: procMount"


def sysctls(spec: Spec) -> Iterator[str]:
    for entry in spec.get("securityContext", {}).get("sysctls", []):
        if entry["name"] not in SYSCTLS:
            yield f"sysctl {entry['name']}"


def escalation(spec: Spec) -> Iterator[str]:
    for name, _, context in containers(spec):
        if context.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: allowPrivilegeEscalation"


def non_root(spec: Spec) -> Iterator[str]:
    pod = spec.get("securityContext", {}).get("runAsNonRoot")
    for name, _, context in containers(spec):
        if context.get("runAsNonRoot", pod) is not True:
            yield f"{name}: runAsNonRoot"
    for name, context in contexts(spec):
        if context.get("runAsUser") == 0:
            yield f"{name}: runAsUser"


def seccomp(spec: Spec) -> Iterator[str]:
    pod = spec.get("securityContext", {}).get("seccompProfile", {}).get("type")
    for name, _, context in containers(spec):
        if context.get("seccompProfile", {}).get("type", pod) not in {
            "RuntimeDefault",
            "Localhost",
        }:
            yield f"{name}: seccompProfile"


def capabilities(spec: Spec) -> Iterator[str]:
    for name, _, context in containers(spec):
        known = context.get("capabilities", {})
        if "ALL" not in known.get("drop", []):
            yield f"{name}: capabilities are not dropped"
        if set(known.get("add", [])) - {"NET_BIND_SERVICE"}:
            yield f"{name}: capabilities are added"


def read_only_root(spec: Spec) -> Iterator[str]:
    for name, _, context in containers(spec):
        if context.get("readOnlyRootFilesystem") is not True:
            yield f"{name}: readOnlyRootFilesystem"


def no_token(spec: Spec) -> Iterator[str]:
    if spec.get("automountServiceAccountToken") is not False:
        yield "automountServiceAccountToken"


RULES: tuple[Rule, ...] = (
    host_processes, host_namespaces, privileged, host_ports, host_of_probes, volume_types,
    apparmor_selinux_proc, sysctls, escalation, non_root, seccomp, capabilities, read_only_root,
    no_token,
)  # fmt: skip


def complaints(spec: Spec) -> list[str]:
    """What in a pod the standard does not allow."""
    return [found for rule in RULES for found in rule(spec)]
