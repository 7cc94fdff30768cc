"""What happens to jobs whose dependencies fail: a field of options and of settings."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal


class DependencyPolicy(IntEnum):
    """What happens to a job when one that it depends on does not complete."""

    FAIL = 1
    CANCEL = 2
    IGNORE = 3
    WAIT = 4
    CONTINUE = 5


DependencyPolicyName = DependencyPolicy | Literal["fail", "cancel", "ignore", "wait", "continue"]
"""What happens to a job when one that it depends on does not complete, or its name."""

POLICIES: dict[int, DependencyPolicy] = {int(policy): policy for policy in DependencyPolicy}
"""By number; a number that a newer server added is not here."""
