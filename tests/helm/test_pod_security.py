"""Every pod of the chart keeps the restricted standard, whatever the values."""

from __future__ import annotations

import copy

import pytest

from tests.helm.pod_security import complaints
from tests.helm.rendering import RELEASES, pod_templates


@pytest.mark.parametrize("values", RELEASES)
def test_pods_keep_the_restricted_standard(values):
    """A namespace that enforces it takes the server, its workers and its test."""
    found = {name: complaints(template["spec"]) for name, template in pod_templates(values)}
    assert found
    assert not any(found.values()), found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hostNetwork": True}, "hostNetwork"),
        ({"volumes": [{"name": "x", "hostPath": {"path": "/"}}]}, "hostPath"),
        ({"automountServiceAccountToken": True}, "automountServiceAccountToken"),
        ({"securityContext": {"runAsUser": 0}}, "runAsUser"),
        ({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, "sysctl"),
        ({"securityContext": {}}, "seccompProfile"),
        ({"initContainers": [{"name": "i"}]}, "i: capabilities are not dropped"),
        ({"initContainers": [{"name": "i"}]}, "i: allowPrivilegeEscalation"),
        ({"initContainers": [{"name": "i", "ports": [{"hostPort": 1}]}]}, "i: hostPort"),
        (
            {"initContainers": [{"name": "i", "securityContext": {"privileged": True}}]},
            "privileged",
        ),
        (
            {"initContainers": [{"name": "i", "securityContext": {"runAsNonRoot": False}}]},
            "i: runAsNonRoot",
        ),
        (
            {"initContainers": [{"name": "i", "securityContext": {"procMount": "Unmasked"}}]},
            "procMount",
        ),
    ],
)
def test_the_rules_find_what_is_not_allowed(change, said):
    """Rules that find nothing would pass as well."""
    _, template = next(pod_templates("default"))
    spec = {**copy.deepcopy(template["spec"]), **change}
    assert any(said in complaint for complaint in complaints(spec))
