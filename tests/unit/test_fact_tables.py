"""Every fact has a row in every table of facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import pytest

from jobline.v1 import entry_pb2
from jobline_server.engine import entries
from jobline_server.engine.apply import APPLY
from jobline_server.engine.notices import DuplicatesFound
from jobline_server.runtime.watch.events import EVENTS
from jobline_server.storage.codec import batch

FACTS = frozenset(get_args(entries.Fact))
# Watchers are notified of more than facts.
OF_FACTS = {kind: row for kind, row in EVENTS.items() if kind is not DuplicatesFound}
TABLES = {"apply": APPLY, "codec": batch.FACTS, "events": OF_FACTS}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_fact_has_a_row(table: Mapping[type, Any]) -> None:
    """A fact that was forgotten in a room is found here, and not by the first server it happens
    to."""
    assert set(table) == FACTS


def test_every_message_of_the_journal_is_read_as_one_fact() -> None:
    """No two facts share a message, and none that may stand in a journal is unknown."""
    names = [row.name for row in batch.FACTS.values()]
    (fact,) = entry_pb2.Entry.DESCRIPTOR.oneofs
    names += [*batch.NO_FACTS, *batch.READ_EARLIER]
    assert sorted(names) == sorted(field.name for field in fact.fields)
