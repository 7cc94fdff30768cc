"""Lanes by key."""

from __future__ import annotations

from jobline_server.engine.lane_table import LaneTable


def test_lanes_of_tenants_and_of_all_are_found_until_they_are_removed() -> None:
    table = LaneTable()
    keys = [(0, "", 0, None, tenant) for tenant in ("", "a", "b")]
    assert [table.find(key) for key in keys] == [None] * 3
    lanes = [table.add(key) for key in keys]
    assert [table.find(key) for key in keys] == lanes
    assert table.find((1, "", 0, None, "a")) is None
    assert list(table) == lanes
    second = table.add((1, "", 0, None, "a"))
    for lane in lanes:
        table.remove(lane)
    assert list(table) == [second]
    table.remove(second)
    assert list(table) == []
    assert not table._parts
