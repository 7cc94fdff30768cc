"""What a program finds in `jobline`."""

from __future__ import annotations

import subprocess
import sys

MODULES = {"errors", "v1"}
NAMES = """
import jobline
print(*sorted(name for name in dir(jobline) if not name.startswith("_")))
print(*sorted(name for name in jobline.__all__ if not name.startswith("_")))
"""


def test_the_package_shows_what_is_public_alone():
    """Trial D9: no modules beside the names that a program is to use."""
    run = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True, check=True)
    shown, public = (set(line.split()) for line in run.stdout.splitlines())
    assert shown - public == MODULES
    assert public <= shown


def test_the_protocol_alone_does_not_bring_the_client():
    """A server that starts loads its messages, and none of what clients are made of."""
    loaded = in_a_process("import sys, jobline.v1.job_service_pb2_grpc; print(*sys.modules)")
    assert not [name for name in loaded if name.startswith("jobline._")]


def test_everything_is_there_at_the_first_use():
    """Names, modules and what is not there, each in a process that has loaded nothing yet."""
    same = in_a_process("import jobline; print(jobline.errors.JobDead is jobline.JobDead)")
    assert same == ["True"]
    assert in_a_process("from jobline import *; print(Client, __version__)")
    assert in_a_process("from jobline import errors, v1; print(errors.__name__, v1.__name__)")
    assert in_a_process("import jobline; print(hasattr(jobline, 'Clinet'))") == ["False"]


def in_a_process(program):
    """The words that a program prints."""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return run.stdout.split()
