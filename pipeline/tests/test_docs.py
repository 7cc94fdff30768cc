"""docs/pipeline.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobline_pipeline.described import described
from jobline_pipeline.store import Store
from jobline_pipeline.views import create_views

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline.md"
RECIPES = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def test_made_parts_are_as_the_schemas():
    """Mend it with: .pipeline-venv/bin/python -m jobline_pipeline.described docs/pipeline.md"""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert described(text) == text


@pytest.fixture(scope="module")
def views(spark, made):
    create_views(Store(spark, str(made[0])))


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_answer(spark, views, recipe):
    """Each block of SQL runs as it is; all but the one on bad files find something."""
    rows = spark.sql(recipe).collect()
    assert rows or "status = 'bad'" in recipe
