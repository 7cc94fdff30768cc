"""What holds for all tests: nothing is judged by how long it took, and Python's collector does not
visit what was there before them.

A property test fails where one example takes longer than 0.2 s, or where making examples is slow,
unless it is told otherwise. Both say more of what else the machine does than of the code; that a
test ends at all is seen to by the time limit of every test.

What was imported and collected stays until the end: thousands of tests and all modules. A full
collection visits each of these objects, and each server that a test starts makes enough new ones
for some. What a test makes is collected as ever.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
