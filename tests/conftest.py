"""What holds for all tests: nothing is judged by how long it took.

A property test fails where one example takes longer than 0.2 s, or where making examples is slow,
unless it is told otherwise. Both say more of what else the machine does than of the code; that a
test ends at all is seen to by the time limit of every test.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
