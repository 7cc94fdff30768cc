"""What two engines are told by one text: they give the same."""

from __future__ import annotations

import pytest

from jobline_pipeline.duck import Duck
from jobline_pipeline.sql import dialect_of, query
from jobline_pipeline.tables import errors
from tests.rows import at

ODD = ["it's", 'a "b"', "back\\slash", "`tick`", "{brace} {{two}}", "", "naïve €", "$1 %s"]
COLUMNS = "id BIGINT, value DOUBLE, text STRING, at TIMESTAMP"
ROWS = [
    (1, 2.5, "b", at(0)),
    (2, None, "a", at(61.5)),
    (3, 7.0, None, at(3599.999999)),
    (4, 7.0, "b", at(3600)),
]


@pytest.fixture
def duck():
    duck = Duck("1g")
    yield duck
    duck.close()


@pytest.fixture
def both(spark, duck):
    """Runs a query, that is made for a dialect, over ROWS in both engines; returns their rows."""
    here = spark.createDataFrame(ROWS, COLUMNS)
    there = duck.kept(duck.arrow(here.toArrow()))

    def run(made):
        mine = query(made(dialect_of(here)), rows=here).collect()
        theirs = query(made(dialect_of(there)), rows=there).arrow().to_pylist()
        return [tuple(row) for row in mine], [tuple(row.values()) for row in theirs]

    return run


def same(both, expression, expected):
    """Compares one value of all rows."""
    mine, theirs = both(lambda say: f"SELECT {expression(say)} AS value FROM {{rows}} AS rows")
    assert mine == theirs == [(expected,)]


@pytest.mark.parametrize("text", ODD)
def test_any_text_is_a_literal(both, text):
    """An objective may have any name; it ends no literal, and names no source."""
    same(both, lambda say: f"max({say.text(text)})", text)


def test_aggregates_take_nulls_alike(both):
    """The greatest may belong to a NULL, and no row counts where a condition is unknown."""
    same(both, lambda _: "max_by(value, id)", 7.0)
    same(both, lambda _: "max_by(text, (coalesce(value, 0), -id))", None)
    same(both, lambda _: "count_if(value > 100)", 0)
    same(both, lambda _: "count_if(value > 5)", 2)


def test_words_and_keys_are_sorted(both):
    """The same order, however the engine came by its rows."""
    same(both, lambda say: say.words("text"), "a, b")
    same(both, lambda say: say.greatest("coalesce(value, 0e0)", "id", 3), [4, 3, 1])


def test_sketches_are_the_same(both):
    """Of few values they are exact, and NULLs are not among them."""
    sketch = "kll_sketch_agg_float(CAST(value AS float))"
    same(both, lambda _: f"kll_sketch_get_n_float({sketch})", 3)
    same(both, lambda _: f"CAST(kll_sketch_get_quantile_float({sketch}, 5e-1) AS double)", 7.0)
    same(both, lambda _: f"CAST(kll_sketch_get_quantile_float({sketch}, 1e-1) AS double)", 2.5)


def test_spark_merges_the_sketches_of_duckdb(spark, duck):
    """Also those of more values than a sketch keeps."""
    made = duck.query(
        "SELECT i % 5 AS part, kll_sketch_agg_float(CAST(i AS float)) AS sketch "
        "FROM range(50000) AS numbers(i) GROUP BY ALL",
        {},
    )
    merged = spark.createDataFrame(made.arrow()).selectExpr("kll_merge_agg_float(sketch) AS s")
    n, median = merged.selectExpr(
        "kll_sketch_get_n_float(s)", "kll_sketch_get_quantile_float(s, 0.5D)"
    ).collect()[0]
    assert n == 50_000
    assert median == pytest.approx(25_000, rel=0.05)


def test_duckdb_keeps_to_its_memory(duck):
    """What is beyond goes to a directory that is named for it; nothing is left in this one."""
    settings = (
        "current_setting('memory_limit') AS memory, current_setting('temp_directory') AS place"
    )
    found = duck.query(f"SELECT {settings}", {}).arrow().to_pylist()[0]
    assert found["memory"] == "953.6 MiB"
    assert "jobline-pipeline-" in found["place"]


@pytest.mark.parametrize(
    ("message", "normal"),
    [
        ("order 812 in /data/a/812.db", "order <n> in <path>"),
        ("timed out after 2.5 s from 10.0.3.7:443", "timed out after <n> s from <n>"),
        ("POST https://a.b/orders/1?x=2 gave 503", "POST <url> gave <n>"),
        ("no such user bob@example.com", "no such user <email>"),
        ("id 3f2504e0-4f89-11d3-9a0c-0305e82c3301 gone", "id <id> gone"),
        ("object 0x7f3a9c at cafe12beef", "object <id> at <id>"),
        ("a dead beef", "a dead beef"),
        ("two\n  lines", "two lines"),
        ("", ""),
    ],
)
def test_messages_lose_what_differs(both, message, normal):
    """Numbers, ids, addresses and paths go; words stay."""
    given = errors.NORMALISED
    same(both, lambda say: f"max({say.call(given, say.text(message))})", normal)
