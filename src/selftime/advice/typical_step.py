"""Computes the typical step of a trace: median times of the measured steps."""

from statistics import median

import polars as pl

from selftime.advice.advice_result import Step
from selftime.analysis.steps.bound_by import step_regime
from selftime.trace import Trace


def typical_step(trace: Trace) -> Step:
    """Returns the median times of the measured steps, in ms; None for unrecorded times."""
    counted = _counted_steps(trace)
    host, device = (
        _ns_to_ms_without_nulls(counted["host_time"]),
        _ns_to_ms_without_nulls(counted["device_time"]),
    )
    return Step(
        count=counted.height,
        device_ms=median(device) if device else None,
        host_ms=median(host) if host else None,
        regime=step_regime(trace),
    )


def counted_step_times_ms(trace: Trace) -> list[float]:
    """Returns the measured steps' device times in ms, or their host times without device times."""
    counted = _counted_steps(trace)
    return _ns_to_ms_without_nulls(counted["device_time"]) or _ns_to_ms_without_nulls(
        counted["host_time"]
    )


def _counted_steps(trace: Trace) -> pl.DataFrame:
    return trace.view("steps").filter(pl.col("counted"))


def _ns_to_ms_without_nulls(times_ns: pl.Series) -> list[float]:
    return [time / 1e6 for time in times_ns.drop_nulls().to_list()]
