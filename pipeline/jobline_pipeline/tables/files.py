"""Bronze `files`: what became of each exported file; by it later batches know repeated ones."""

from __future__ import annotations

from jobline_pipeline.tables.table import INT, LONG, STRING, TIME, Column, Table

TABLE = Table(
    name="files",
    layer="bronze",
    what="One row per exported file that was looked at.",
    columns=(
        Column("path", STRING, "The file."),
        Column("folder", STRING, "The end of its folder: its date and hour."),
        Column("shard", INT, "Its shard, from its name."),
        Column("first_offset", LONG, "Its first offset, from its name."),
        Column("last_offset", LONG, "Its last offset, from its name."),
        Column("bytes", LONG, "Its size."),
        Column("rows", LONG, "Rows of it that are in `events`."),
        Column("rows_apart", LONG, "Rows of it that were set apart, because of `reason`."),
        Column("status", STRING, "`taken`, `partly` (the others were there), `repeated` or `bad`."),
        Column("reason", STRING, "What is wrong with it, or with the rows set apart."),
        Column("first_at", TIME, "Its earliest event."),
        Column("last_at", TIME, "Its latest event."),
        Column("query", STRING, "The query that read it."),
        Column("batch", LONG, "The batch of that query."),
    ),
    key=("path",),
    skipped_by=("folder",),
)
