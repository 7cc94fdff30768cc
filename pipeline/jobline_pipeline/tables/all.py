"""All tables in the order in which they are shown."""

from __future__ import annotations

from jobline_pipeline.tables import (
    attempts,
    audit,
    batches,
    capacity,
    error_groups,
    errors,
    events,
    fairness,
    files,
    flows,
    jobs,
    open_jobs,
    queue_minutes,
    slo,
    versions,
    workers,
)
from jobline_pipeline.tables.table import Table

TABLES: tuple[Table, ...] = tuple(
    module.TABLE
    for module in (
        files,
        events,
        attempts,
        jobs,
        open_jobs,
        queue_minutes,
        errors,
        error_groups,
        workers,
        versions,
        fairness,
        flows,
        batches,
        slo,
        capacity,
        audit,
    )
)
