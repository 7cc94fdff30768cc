"""Parts of docs/ that are made from the code are as the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import docs_tables

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_made_parts_are_as_the_code_says(document):
    """`make docs` would change nothing."""
    text = document.read_text(encoding="utf-8")
    assert docs_tables.renewed(text) == text


def test_every_part_stands_in_a_document():
    found = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    named = {match["name"] for match in docs_tables.PART.finditer(found)}
    assert named == set(docs_tables.PARTS)


def test_stale_part_is_renewed():
    stale = "<!-- made from x: exit-codes -->\nold\n<!-- end of exit-codes -->"
    assert "130" in docs_tables.renewed(stale)


def test_list_of_options_to_come_says_that_there_is_none():
    assert docs_tables.options_to_come() == "None at present."


def test_every_metric_is_described():
    """What the page for Prometheus can say stands in the guide for operators, and nothing else."""
    files = (ROOT / "service/jobline_server/web").glob("*metrics.py")
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    guide = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    made = set(re.findall(r'\(\s*"(jobline_\w+)"', source))
    described = set(re.findall(r"`(jobline_[a-z_]+)[{`]", guide))
    assert {name.removesuffix("_total") for name in described - {"jobline_info"}} == made
