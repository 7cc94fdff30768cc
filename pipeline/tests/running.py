"""Brings tables up to date in a test, and shows what they hold."""

from __future__ import annotations

from jobline_pipeline.store import Store
from jobline_pipeline.stream import Following, follow
from jobline_pipeline.tables.all import TABLES
from jobline_pipeline.tables.slo import Objective

OBJECTIVES = (
    Objective("quick", "mail", "wait", 0.99, 0.002),
    Objective("done", "*", "completed", 0.999),
)
# Sketches of the same values may differ in bytes; the ledger names its query.
_LEFT_OUT = ("_sketch", "query", "batch", "path")


def run(spark, history, root, *, files_a_batch=2000, every=None, tell=lambda _: None):
    """Runs until all files were read; returns the counts of each batch."""
    counts = []
    following = Following(str(history), every, files_a_batch, OBJECTIVES)
    query = follow(
        Store(spark, str(root)), following, tell=tell, done=lambda _, c: counts.append(c)
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return counts


def contents(spark, root, *, without=("files",)):
    """Returns the rows of each table, sorted, without what may differ between two runs."""
    store = Store(spark, str(root))
    found = {}
    for table in TABLES:
        if table.name not in without:
            names = [c.name for c in table.columns if not c.name.endswith(_LEFT_OUT)]
            rows = store.read(table).select([f"`{name}`" for name in names]).collect()
            found[table.name] = sorted(repr(tuple(_rounded(v) for v in row)) for row in rows)
    return found


def _rounded(value):
    # Sums of the same numbers in another order differ in their last digits. What lies just between
    # two values of nine digits, as halves of short numbers do, goes to the greater one.
    return float(f"{value * (1 + 1e-12):.9g}") if isinstance(value, float) else value
