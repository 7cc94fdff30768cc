"""Workers empty only the limiters that their jobs pass."""

from __future__ import annotations

import pytest

from jobline_server.dispatch.frames import Settle
from jobline_server.engine.commands import Refused, ReleaseItem
from jobline_server.engine.values import ReleaseReason
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_confirms import Confirming


async def test_release_empties_no_limiter_that_its_job_does_not_pass(runtime: Runtime) -> None:
    """Nothing of the frame is settled then."""
    confirming = Confirming(runtime)
    first, second = await confirming.leases(2)
    told = ReleaseItem(*second, why=ReleaseReason.LIMITED, until_ms=1 << 50, limiter="api")
    settles = Settle(1, [first[0]], [first[1]]), Settle(2, releases=[told])
    with pytest.raises(Refused) as refused:
        confirming.handle(*settles)
    assert refused.value.field == "settles[1].releases[0].limiter"
    assert confirming.runtime.core.load.active_jobs == 2
    confirming.handle(Settle(3, [second[0]], [second[1]]))
    confirming.handle(Settle(4, releases=[told]))
    assert confirming.runtime.core.load.active_jobs == 1, "a lease that is lost says nothing"
