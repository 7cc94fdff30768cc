"""Adds the index that relays read rows by to an outbox of the first version."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations

from jobline.outbox import Outbox


def create(_apps: Any, schema_editor: Any) -> None:
    """Creates the index, unless it exists."""
    schema_editor.execute(Outbox().index_ddl(schema_editor.connection.vendor))


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """The index; it may stay where the first version is wanted back."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("jobline_outbox", "0001_initial")]
    operations: ClassVar[list[Any]] = [migrations.RunPython(create, migrations.RunPython.noop)]
