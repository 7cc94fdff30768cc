"""Update masks: every setting may be named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import pytest

from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.values import QueueSettings
from jobline_server.rpc.convert import groups, queues


@pytest.mark.parametrize(
    ("paths", "settings"), [(queues.PATHS, QueueSettings), (groups.PATHS, GroupSettings)]
)
def test_every_path_names_a_value(paths: Mapping[str, str], settings: type) -> None:
    """Each field of the message, and each value, once."""
    assert sorted(paths.values()) == sorted(field.name for field in fields(settings))
