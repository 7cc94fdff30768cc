"""Gold `slo`: how declared objectives were kept, minute by minute.

    [[objective]]
    name = "mail starts quickly"
    queue = "mail"            # or "*": all queues together
    measure = "wait"          # wait, run or total: at most `at_most`; completed: the job completes
    at_most = 5.0             # seconds
    share = 0.99              # of the jobs

The *burn rate* is the share of bad ones over the share that may be bad: 1 uses up exactly what the
objective allows, 14.4 uses up a month's allowance in two days.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobline_pipeline.problems import PipelineError
from jobline_pipeline.sql import Dialect, Rows, dialect_of, minute_of, share
from jobline_pipeline.tables.table import (
    DOUBLE,
    LONG,
    STRING,
    TIME,
    Column,
    Table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MEASURES = ("wait", "run", "total", "completed")

TABLE = Table(
    name="slo",
    layer="gold",
    what="One row per objective and minute in which it measured something.",
    columns=(
        Column("minute", TIME, "The begin of the minute."),
        Column("objective", STRING, "The name of the objective."),
        Column("queue", STRING, "Its queue."),
        Column("share", DOUBLE, "The share that shall be good."),
        Column("measured", LONG, "How many were measured."),
        Column("bad", LONG, "How many were not good."),
        Column("burn_rate", DOUBLE, "How fast the allowance is used up."),
    ),
    key=("minute", "objective"),
    window="minute",
)


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective; `at_most` is in seconds."""

    name: str
    queue: str
    measure: str
    share: float
    at_most: float = 0.0


def read_objectives(path: Path) -> list[Objective]:
    """Reads a file of objectives; raises PipelineError that names what is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PipelineError(f"There is no file of objectives {path}.") from None
    except tomllib.TOMLDecodeError as error:
        raise PipelineError(f"{path} is not TOML: {error}.") from None
    return [_objective(path, one) for one in document.get("objective", [])]


def _objective(path: Path, given: dict[str, Any]) -> Objective:
    try:
        made = Objective(**given)
        fits = made.measure in MEASURES and 0.0 < float(made.share) < 1.0 and made.at_most >= 0
    except TypeError:
        fits = False
    if not fits:
        raise PipelineError(
            f"{path}: an objective has name, queue, measure ({', '.join(MEASURES)}), share "
            f"(between 0 and 1) and at_most (seconds, but for `completed`); this one is {given}."
        )
    return made


def make(attempts: Rows, jobs: Rows, objectives: Sequence[Objective]) -> Rows:
    """Takes `attempts` and `jobs` of whole minutes, and what was declared."""
    say = dialect_of(attempts)
    declared = ", ".join(_declared(objective, say) for objective in objectives)
    # A job that somebody cancelled has not failed.
    return TABLE.made(
        f"""
        WITH ends AS (
          SELECT
            ended_at, queue, wait_ms, run_ms,
            CAST(NULL AS double) AS total_ms, CAST(NULL AS {say.type("string")}) AS outcome
          FROM {{attempts}} AS attempts
          UNION ALL
          SELECT ended_at, queue, NULL, NULL, total_ms, outcome FROM {{jobs}} AS jobs
        ),
        objectives AS (
          SELECT * FROM (VALUES {declared})
            AS given(objective, of_queue, measure, share, at_most_ms)
        ),
        checked AS (
          SELECT
            {minute_of("ended_at")} AS minute,
            objective,
            of_queue,
            share,
            CASE measure
              WHEN 'wait' THEN wait_ms > at_most_ms
              WHEN 'run' THEN run_ms > at_most_ms
              WHEN 'total' THEN total_ms > at_most_ms
              ELSE CASE
                WHEN outcome IN ('completed', 'dead', 'expired') THEN outcome != 'completed'
              END
            END AS is_bad
          FROM ends
          JOIN objectives ON of_queue = '*' OR of_queue = queue
        ),
        sums AS (
          SELECT
            minute, objective, of_queue AS queue, share,
            count(*) AS measured, count_if(is_bad) AS bad
          FROM checked
          WHERE is_bad IS NOT NULL
          GROUP BY minute, objective, of_queue, share
        )
        SELECT *, {share("bad", "measured")} / (1 - share) AS burn_rate FROM sums
        """,
        attempts=attempts,
        jobs=jobs,
    )


def _declared(one: Objective, say: Dialect) -> str:
    texts = (say.text(text) for text in (one.name, one.queue, one.measure))
    return f"({', '.join(texts)}, {one.share:.17e}, {one.at_most * 1000:.17e})"
