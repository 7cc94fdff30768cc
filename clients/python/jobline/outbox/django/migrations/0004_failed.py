"""Adds the index of the rows that were refused to an outbox of an earlier version."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations

from jobline.outbox import Outbox


def create(_apps: Any, schema_editor: Any) -> None:
    """Creates the index, unless it exists."""
    schema_editor.execute(Outbox().failed_index_ddl(schema_editor.connection.vendor))


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """The index; it may stay where an earlier version is wanted back."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("jobline_outbox", "0003_queues")]
    operations: ClassVar[list[Any]] = [migrations.RunPython(create, migrations.RunPython.noop)]
