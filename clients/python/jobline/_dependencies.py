"""What happens to jobs whose dependencies fail: a field of options and of settings."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

from jobline._enums import named
from jobline.v1 import job_pb2


class DependencyPolicy(IntEnum):
    """What happens to a job when one that it depends on does not complete."""

    FAIL = 1
    CANCEL = 2
    IGNORE = 3
    WAIT = 4


DependencyPolicyName = DependencyPolicy | Literal["fail", "cancel", "ignore", "wait"]
"""What happens to a job when one that it depends on does not complete, or its name."""

POLICIES: dict[int, DependencyPolicy] = {int(policy): policy for policy in DependencyPolicy}
"""By number; a number that a newer server added is not here."""


def number_of(policy: DependencyPolicyName | None) -> job_pb2.DependencyPolicy.ValueType:
    """Returns the number of a policy, 0 for None. Raises InvalidArgument for an unknown name."""
    number = 0 if policy is None else named(DependencyPolicy, policy)
    return job_pb2.DependencyPolicy.ValueType(number)
