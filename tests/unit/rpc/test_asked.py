"""What an operation was asked: fields that are not to be seen go, wherever they stand."""

from __future__ import annotations

import pytest

from jobline_server.rpc.convert.asked import without


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ('{"id":"7"}', '{"id":"7"}'),
        ('{"filter":{"queue":"q","headers":{"a":"b"}}}', '{"filter":{"queue":"q"}}'),
        ('{"jobs":[{"headers":{}},{"name":"n"}]}', '{"jobs":[{},{"name":"n"}]}'),
        ('{"headers":{"headers":"x"}}', "{}"),
        # Cut: the first of them is where it ends.
        ('{"q":"e","headers":{"a":"b', '{"q":"e",'),
        ('{"error_contains":"x","headers":{"a', "{"),
        # Nothing that it says is taken for a field.
        ('{"name":"\\"headers\\":1","limit":5', '{"name":"\\"headers\\":1","limit":5'),
        ("", ""),
    ],
)
def test_fields_are_left_out(asked: str, left: str) -> None:
    assert without(asked, ("headers", "error_contains")) == left
