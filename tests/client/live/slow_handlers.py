"""A handler whose module takes long to import in a child: until a file is there."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

GATE = "JOBLINE_TEST_GATE"

if multiprocessing.parent_process() is not None:
    while not Path(os.environ[GATE]).exists():
        time.sleep(0.005)


def same(payload):
    return payload
