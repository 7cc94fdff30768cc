"""What docs/testing.md shows works: its blocks, as they stand, are one file of tests that pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobline import CancelReason, LeaseReason
from jobline.testing import Report, make_context

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(90)
def test_every_test_of_the_page_passes(tmp_path):
    """Trial D8: in a process of its own, with pytest as a reader has it."""
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    shown = tmp_path / "test_shown.py"
    shown.write_text("\n\n".join(blocks), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-o", "asyncio_mode=auto", "--rootdir", str(tmp_path), str(shown)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == 0, ended.stdout[-4_000:]
    assert f"{sum(block.count('def test_') for block in blocks)} passed" in ended.stdout


def test_a_context_for_tests_says_what_it_was_told():
    """Trial D8: and keeps what its handler says."""
    context = make_context(
        queue="mail", name="n", attempt=2, headers={"a": "b"}, checkpoint={"at": 1}, state="shared"
    )
    assert (context.queue, context.name, context.attempt) == ("mail", "n", 2)
    assert (context.reason, context.headers, context.state) == (
        LeaseReason.RETRY,
        {"a": "b"},
        "shared",
    )
    assert context.checkpoint_value() == {"at": 1}
    context.progress(50, "half")
    context.save_checkpoint(b"x")
    assert context.reports == [Report(50, "half", None), Report(None, None, b"x")]
    context.cancel(CancelReason.STOPPING)
    assert context.cancelled
