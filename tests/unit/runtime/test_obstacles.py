"""Obstacles: plain values that agree with the protocol."""

from __future__ import annotations

from jobline.v1.job_admin_service_pb2 import ObstacleKind as ProtoObstacleKind
from jobline_server.runtime.obstacles import ObstacleKind


def test_obstacles_have_the_numbers_of_the_protocol() -> None:
    """They are sent as they are."""
    names = {f"OBSTACLE_KIND_{kind.name}": kind.value for kind in ObstacleKind}
    assert names == {name: n for name, n in ProtoObstacleKind.items() if n}
