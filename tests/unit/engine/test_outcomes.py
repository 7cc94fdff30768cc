"""What a verb knows of jobs that are not live, and what it has to ask for."""

from __future__ import annotations

import pytest

from jobline_server.engine.decide.outcomes import OutcomesNeeded, states_of
from jobline_server.engine.values import JobState


def test_live_jobs_are_known_and_others_as_they_were_looked_up(world):
    live = world.row()
    known = {7: JobState.DEAD, 8: None, live: JobState.COMPLETED}
    assert states_of(world.shard, [live, 7, 8], known) == {
        live: JobState.READY,
        7: JobState.DEAD,
        8: None,
    }


def test_all_that_is_not_known_is_asked_for_at_once(world):
    live = world.row()
    with pytest.raises(OutcomesNeeded, match="what became of 2 jobs") as needed:
        states_of(world.shard, [7, live, 8, 9], {8: None})
    assert needed.value.ids == [7, 9]
