"""Creates the outbox and the fence."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations

from jobline.outbox import Outbox, fence


def create(_apps: Any, schema_editor: Any) -> None:
    """Creates the tables, unless they exist."""
    Outbox().create(schema_editor.connection)
    fence.create(schema_editor.connection)


def drop(_apps: Any, schema_editor: Any) -> None:
    """Drops the tables, with the jobs that were not pushed."""
    for table in (Outbox().table, fence.table):
        schema_editor.execute(f"DROP TABLE IF EXISTS {table}")


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """The first version."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar[list[Any]] = [migrations.RunPython(create, drop)]
