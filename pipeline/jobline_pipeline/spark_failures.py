"""What Spark raises: errors that it has classes for, and bare ones of the JVM.

A task that fails while a table is written comes as the latter.
"""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK_FAILURES: tuple[type[Exception], ...] = (PySparkException, Py4JJavaError)
