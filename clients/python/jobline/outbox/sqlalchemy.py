"""The tables of this package for SQLAlchemy's metadata, so that `create_all` and Alembic know them.

outbox_table(Base.metadata)
fence_table(Base.metadata)
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, Table, Text, text

from jobline.outbox._fence import Fence, fence
from jobline.outbox._outbox import Outbox
from jobline.outbox._tables import failed_index_of, index_of


def outbox_table(metadata: MetaData, outbox: Outbox | None = None) -> Table:
    """Returns the table of an outbox, default that of `Outbox()`, as part of some metadata."""
    full_name = (outbox or Outbox()).table
    schema, _, name = full_name.rpartition(".")
    waits, failed = text("error IS NULL"), text("error IS NOT NULL")
    return Table(
        name,
        metadata,
        Column("id", Text, primary_key=True),
        Column("queue", Text, nullable=False),
        Column("job", LargeBinary, nullable=False),
        Column("size", BigInteger, nullable=False),
        Column("written_at_ms", BigInteger, nullable=False),
        Column("error", Text),
        Index(
            *(index_of(full_name), "queue", "id", "size"),
            sqlite_where=waits,
            postgresql_where=waits,
        ),
        Index(failed_index_of(full_name), "id", sqlite_where=failed, postgresql_where=failed),
        schema=schema or None,
    )


def fence_table(metadata: MetaData, of: Fence = fence) -> Table:
    """Returns the table of a fence, default that of `fence`, as part of some metadata."""
    schema, _, name = of.table.rpartition(".")
    return Table(
        name,
        metadata,
        Column("job", Text, primary_key=True),
        Column("step", Text, primary_key=True),
        Column("delivery", BigInteger, nullable=False),
        Column("passed_at_ms", BigInteger, nullable=False),
        schema=schema or None,
    )
