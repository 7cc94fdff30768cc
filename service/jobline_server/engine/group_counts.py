"""Counts of the jobs of a group, which in a fair queue its tenant has."""

from __future__ import annotations

from jobline_server.engine.group import Group
from jobline_server.engine.queue import Queue


def active_of(queue: Queue, group: Group) -> int:
    """Returns how many jobs of a group are ACTIVE."""
    if queue.fair is None:
        return group.active()
    tenant = queue.fair.tenants.find(group.name)
    return 0 if tenant is None else tenant.active


def ready_of(queue: Queue, group: Group) -> int:
    """Returns how many jobs of a group are READY."""
    if queue.fair is None:
        return group.ready + sum([job.is_ready() for job in group.admitted])
    tenant = queue.fair.tenants.find(group.name)
    return 0 if tenant is None else tenant.ready
