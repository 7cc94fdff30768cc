"""What operations change, as it is at a moment."""

from __future__ import annotations

from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.group import Group
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS, GroupSettings
from jobline_server.engine.load import Load
from jobline_server.engine.operations import Pause
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import DEFAULT_SETTINGS
from jobline_server.runtime.calls.changes import (
    find_group,
    group_settings_of,
    limit_of,
    pause_of,
    settings_of,
)


def test_what_does_not_exist_is_as_a_new_one_would_be() -> None:
    assert find_group(Shard(0, epoch=1, load=Load()), "mail", "acme") is None
    assert (pause_of(None), limit_of(None)) == (Pause(), None)
    assert (settings_of(None), group_settings_of(None)) == (DEFAULT_SETTINGS, NO_GROUP_SETTINGS)


def test_a_group_that_has_used_up_its_rate_is_not_limited_by_anybody() -> None:
    group = Group("mail", "acme")
    group.settings = GroupSettings(concurrency=2)
    group.limited, group.is_used_up = TimeLimit(5, "ops", "429"), True
    assert limit_of(group) is None
    group.is_used_up = False
    assert limit_of(group) == TimeLimit(5, "ops", "429")
    assert group_settings_of(group).concurrency == 2
    group.paused, group.paused_by, group.pause_reason = True, "ops", "slow"
    assert pause_of(group) == Pause(True, "ops", "slow")
