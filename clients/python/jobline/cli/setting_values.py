"""Settings of several parts as they are typed: `100/1m/20`, `10m/5`, `99%/30s`."""

from __future__ import annotations

from datetime import timedelta

from jobline._ageing import Ageing
from jobline._objective import Objective
from jobline._rate_limit import RateLimit
from jobline._times import parse_span, seconds_of
from jobline.cli.durations import show_span


def whole(text: str) -> int:
    """Returns a whole number. Raises ValueError."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def share(text: str) -> float:
    """Returns a number. Raises ValueError."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def parse_rate(text: str) -> RateLimit:
    """Returns the rate of `100/1m`, `100/m`, or `100/1m/20` with a burst. Raises ValueError."""
    rate, *rest = text.split("/")
    if len(rest) > 2:
        raise ValueError(f"{text!r} is not a rate such as 100/1m")
    # A unit alone is one of it.
    period = parse_span(f"1{rest[0]}" if rest[0].isalpha() else rest[0]) if rest else None
    return RateLimit(
        rate=whole(rate), period=period, burst=whole(rest[1]) if len(rest) > 1 else None
    )


def show_rate(rate: RateLimit) -> str:
    """Returns a rate as it is typed."""
    span = "1s" if rate.period is None else _typed(seconds_of(rate.period))
    return f"{rate.rate}/{span}" + ("" if rate.burst is None else f"/{rate.burst}")


def _typed(seconds: float) -> str:
    return show_span(seconds).replace(" min", "m").replace(" ", "")


def parse_ageing(text: str) -> Ageing:
    """Returns the ageing of `10m`, `10m/5` with a step, or `10m/5/50` with a maximum. Raises
    ValueError.
    """
    after, *rest = text.split("/")
    if len(rest) > 2:
        raise ValueError(f"{text!r} is not an ageing such as 10m/5/50")
    step, most = [*map(whole, rest), None, None][:2]
    return Ageing(after=timedelta(seconds=parse_span(after)), step=step, max=most)


def show_ageing(ageing: Ageing) -> str:
    """Returns an ageing as it is typed."""
    shown = _typed(seconds_of(ageing.after))
    if ageing.max is not None:
        return f"{shown}/{ageing.step or 1}/{ageing.max}"
    return shown if ageing.step in {None, 1} else f"{shown}/{ageing.step}"


def parse_objective(text: str) -> Objective:
    """Returns the objective of `99%/30s`. Raises ValueError."""
    percent, slash, span = text.partition("/")
    if not slash:
        raise ValueError(f"{text!r} is not an objective such as 99%/30s")
    start_within = timedelta(seconds=parse_span(span))
    return Objective(percent=share(percent.strip().removesuffix("%")), start_within=start_within)


def show_objective(objective: Objective) -> str:
    """Returns an objective as it is typed."""
    return f"{objective.percent:g}%/{_typed(seconds_of(objective.start_within))}"
