"""The parts of docs/pipeline.md that are made from the schemas.

    python -m jobline_pipeline.described docs/pipeline.md

writes them anew; a test fails when they differ.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pyspark.sql import types as t

from jobline_pipeline.schemas import EVENTS
from jobline_pipeline.tables import events
from jobline_pipeline.tables.all import TABLES
from jobline_pipeline.tables.table import Table


def contract() -> str:
    """The columns of exported events."""
    rows = ["| column | type | meaning |", "|---|---|---|"]
    for field in EVENTS:
        name = f"**`{field.name}`**" if field.required else f"`{field.name}`"
        rows.append(f"| {name} | {_type(field.type)} | {field.meaning} |")
    return "\n".join(rows)


def tables() -> str:
    """All tables with their columns."""
    return "\n\n".join(_table(table) for table in TABLES)


def described(document: str) -> str:
    """Returns the document with its made parts as they should be. Raises `ValueError` if it lacks
    one.
    """
    for name, made in (("events-contract", contract()), ("pipeline-tables", tables())):
        part = re.compile(
            rf"(<!-- made by the pipeline from [^\n]+: {name} -->\n).*?(<!-- end of {name} -->)",
            re.DOTALL,
        )
        found = part.search(document)
        if found is None:
            raise ValueError(f"the document has no part {name}")
        document = f"{document[: found.end(1)]}{made}\n{document[found.start(2) :]}"
    return document


def _table(table: Table) -> str:
    key = ", ".join(f"`{name}`" for name in table.key)
    said = f"### `{table.name}` ({table.layer})\n\n{table.what} Key: {key}."
    if table is events.TABLE:
        return f"{said} The columns of the contract, and `date`."
    columns = [f"| `{c.name}` | {_type(c.type)} | {c.meaning} |" for c in table.columns]
    return "\n".join([said, "", "| column | type | meaning |", "|---|---|---|", *columns])


def _type(kind: t.DataType) -> str:
    return str(kind.simpleString())


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(described(path.read_text(encoding="utf-8")), encoding="utf-8")
