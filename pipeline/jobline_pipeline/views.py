"""The tables as views of a session, with what is best computed when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobline_pipeline.tables import queue_minutes, versions
from jobline_pipeline.tables.all import TABLES

if TYPE_CHECKING:
    from jobline_pipeline.store import Store


def create_views(store: Store) -> list[str]:
    """Makes a temporary view of each table, and three more; returns their names."""
    for table in TABLES:
        store.read(table).createOrReplaceTempView(table.name)
    minutes = store.read(queue_minutes.TABLE)
    queue_minutes.by_hour(minutes).createOrReplaceTempView("queue_hours")
    queue_minutes.with_backlog(minutes).createOrReplaceTempView("queue_backlog")
    compared = versions.compared(store.read(versions.TABLE))
    compared.createOrReplaceTempView("version_comparison")
    return [*(table.name for table in TABLES), "queue_hours", "queue_backlog", "version_comparison"]
