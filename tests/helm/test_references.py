"""What an object names is there: selectors, ports, volumes, ConfigMaps, Secrets of the values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.helm.rendering import (
    RELEASES,
    Object,
    everywhere,
    objects,
    of_kind,
    pod_templates,
    values_of,
)


def labels_of_pods(values: str) -> list[dict[str, str]]:
    return [template["metadata"].get("labels", {}) for _, template in pod_templates(values)]


def selected(selector: dict[str, str], pods: list[dict[str, str]]) -> list[dict[str, str]]:
    return [labels for labels in pods if selector.items() <= labels.items()]


def selectors(values: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each selector of pods, by the object that has it."""
    for found in objects(values):
        name = f"{found['kind']}/{found['metadata']['name']}"
        spec = found.get("spec", {})
        if found["kind"] == "Service":
            yield name, spec["selector"]
        elif found["kind"] in {"StatefulSet", "Deployment", "PodDisruptionBudget"}:
            yield name, spec["selector"]["matchLabels"]
        elif found["kind"] == "NetworkPolicy":
            yield name, spec["podSelector"]["matchLabels"]


@pytest.mark.parametrize("values", RELEASES)
def test_each_selector_finds_one_kind_of_pod(values):
    """None finds nothing, and none takes the pods of another."""
    pods = labels_of_pods(values)
    for name, selector in selectors(values):
        assert len(selected(selector, pods)) == 1, name


@pytest.mark.parametrize("values", RELEASES)
def test_workloads_have_the_labels_that_they_select(values):
    for found in objects(values):
        if found["kind"] in {"StatefulSet", "Deployment"}:
            selector = found["spec"]["selector"]["matchLabels"]
            assert selector.items() <= found["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("values", RELEASES)
def test_ports_are_those_of_the_server(values):
    """By name in Services, monitors and policies; by number in probes, which know no names."""
    (server,) = of_kind(values, "StatefulSet")
    (container,) = server["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for service in of_kind(values, "Service"):
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports.keys()
    for monitor in of_kind(values, "ServiceMonitor"):
        (service,) = (
            found
            for found in of_kind(values, "Service")
            if monitor["spec"]["selector"]["matchLabels"].items()
            <= found["metadata"]["labels"].items()
        )
        named = {port["name"] for port in service["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= named
    for policy in of_kind(values, "NetworkPolicy"):
        rules = [rule["ports"] for rule in policy["spec"]["ingress"]]
        assert {port["port"] for rule in rules for port in rule} <= ports.keys()
    probed = {probe["port"] for probe in everywhere(container, key="grpc")}
    assert len(probed) == 1
    assert probed <= set(ports.values())


@pytest.mark.parametrize("values", RELEASES)
def test_probes_use_a_port_without_tls_and_tokens(values):
    """Kubelet can neither check a certificate nor send a token."""
    given = values_of(values)
    plain = not any(given.get(name, {}).get("existingSecret") for name in ("tls", "auth"))
    (server,) = of_kind(values, "StatefulSet")
    probed = {probe["port"] for probe in everywhere(server, key="grpc")}
    assert probed == ({7070} if plain else {7072})


@pytest.mark.parametrize("values", RELEASES)
def test_mounts_have_volumes_and_volumes_are_mounted(values):
    (server,) = of_kind(values, "StatefulSet")
    claims = [claim["metadata"]["name"] for claim in server["spec"].get("volumeClaimTemplates", [])]
    for name, template in pod_templates(values):
        volumes = [volume["name"] for volume in template["spec"]["volumes"]]
        volumes += claims if name.startswith("StatefulSet/") else []
        (container,) = template["spec"]["containers"]
        mounts = container["volumeMounts"]
        assert sorted(volumes) == sorted(mount["name"] for mount in mounts)
        assert len({mount["mountPath"] for mount in mounts}) == len(mounts)


def given_names(node: Any) -> set[str]:
    """Names of Secrets and claims that the values say exist."""
    found = {
        str(name)
        for key in ("existingSecret", "existingClaim")
        for name in everywhere(node, key=key)
    }
    return found | set(node.get("imagePullSecrets", []))


def secrets_of(found: Object) -> Iterator[str]:
    """Names of the Secrets that an object refers to."""
    yield from everywhere(found, key="secretName")
    for key in ("secretKeyRef", "secretRef", "secret", "keySecret", "credentials"):
        yield from (entry["name"] for entry in everywhere(found, key=key) if "name" in entry)
    for entries in everywhere(found, key="imagePullSecrets"):
        yield from (entry["name"] for entry in entries)
    for entries in everywhere(found, key="secretTargetRef"):
        yield from (entry["name"] for entry in entries)


@pytest.mark.parametrize("values", RELEASES)
def test_secrets_claims_and_config_maps_are_there(values):
    """Secrets are never the chart's own; all others it makes, or the values name them."""
    given = given_names(values_of(values))
    made = {(found["kind"], found["metadata"]["name"]) for found in objects(values)}
    accounts = {"default"} | {name for kind, name in made if kind == "ServiceAccount"}
    for found in objects(values):
        assert set(secrets_of(found)) <= given
        for entry in everywhere(found, key="configMap"):
            assert ("ConfigMap", entry["name"]) in made
        for name in everywhere(found, key="claimName"):
            assert name in given or ("PersistentVolumeClaim", name) in made
        assert set(everywhere(found, key="serviceAccountName")) <= accounts
    assert "Secret" not in {kind for kind, _ in made}


@pytest.mark.parametrize("values", RELEASES)
def test_every_secret_of_the_values_is_used(values):
    """A Secret that is named and not mounted would be a surprise."""
    used = {name for found in objects(values) for name in secrets_of(found)}
    claims = {name for found in objects(values) for name in everywhere(found, key="claimName")}
    assert given_names(values_of(values)) - {""} == (used | claims) & given_names(values_of(values))


@pytest.mark.parametrize("values", RELEASES)
def test_the_service_of_a_stateful_set_is_headless_and_its_own(values):
    (server,) = of_kind(values, "StatefulSet")
    (service,) = (
        found
        for found in of_kind(values, "Service")
        if found["metadata"]["name"] == server["spec"]["serviceName"]
    )
    assert service["spec"]["clusterIP"] == "None"
    assert server["spec"]["replicas"] == 1


@pytest.mark.parametrize("values", RELEASES)
def test_scaled_objects_scale_workers_alone_and_ask_the_server(values):
    """The server has one replica; a ScaledObject of it would make a second."""
    workers = {found["metadata"]["name"]: found for found in of_kind(values, "Deployment")}
    authentications = {
        found["metadata"]["name"] for found in of_kind(values, "TriggerAuthentication")
    }
    services = {found["metadata"]["name"]: found for found in of_kind(values, "Service")}
    for found in of_kind(values, "ScaledObject"):
        worker = workers[found["spec"]["scaleTargetRef"]["name"]]
        assert "replicas" not in worker["spec"], "two would decide"
        (trigger,) = found["spec"]["triggers"]
        host, port = trigger["metadata"]["scalerAddress"].split(":")
        ports = services[host.partition(".")[0]]["spec"]["ports"]
        assert int(port) in {entry["port"] for entry in ports if entry["name"] == "grpc"}
        assert all(isinstance(value, str) for value in trigger["metadata"].values())
        reference = trigger.get("authenticationRef", {}).get("name")
        assert reference is None or reference in authentications


@pytest.mark.parametrize("values", RELEASES)
def test_names_fit_where_they_are_used(values):
    """Names of Services and labels have 63 characters at most."""
    for found in objects(values):
        assert len(found["metadata"]["name"]) <= 63
        for labels in everywhere(found, key="labels"):
            assert all(len(value) <= 63 for value in labels.values())
    (server,) = of_kind(values, "StatefulSet")
    # The label controller-revision-hash has ten characters more.
    assert len(server["metadata"]["name"]) <= 52
