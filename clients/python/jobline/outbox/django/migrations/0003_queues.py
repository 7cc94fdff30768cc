"""Adds the index that relays read rows by today, in the place of that of an earlier version."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations

from jobline.outbox import Outbox


def create(_apps: Any, schema_editor: Any) -> None:
    """Creates the index, unless it exists, and drops the earlier one."""
    schema_editor.execute(Outbox().index_ddl(schema_editor.connection.vendor))
    schema_editor.execute("DROP INDEX IF EXISTS jobline_outbox_waiting")


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """The index; it may stay where an earlier version is wanted back."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("jobline_outbox", "0002_index")]
    operations: ClassVar[list[Any]] = [migrations.RunPython(create, migrations.RunPython.noop)]
