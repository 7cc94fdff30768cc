"""What retention does first after a start."""

from __future__ import annotations

from jobline_server.engine.limits import HOUR_MS, MINUTE_MS
from jobline_server.engine.values import JobState
from tests.unit.background.conftest import Keeping

STALE = JobState.STALE


async def test_stale_jobs_of_before_a_start_are_deleted_in_their_time(keeping: Keeping) -> None:
    """They are past their age, but not to be aged once more; nor does a count concern them."""
    await keeping.sets(age_ms=MINUTE_MS)
    (job_id,) = await keeping.cancel()
    assert await keeping.after(MINUTE_MS + 1) == {"staled": 1}
    await keeping.sets(count=0, age_ms=MINUTE_MS)
    keeping.start_again()
    assert await keeping.after(0) == {}
    assert await keeping.kept() == {job_id: STALE}
    assert await keeping.after(HOUR_MS + 1) == {"deleted": 1}
