"""The typical step of a trace: the scale on which every saving is measured."""

from statistics import median

import polars as pl

from selftime.advice.answer import Step
from selftime.analysis.steps.bound_by import regime
from selftime.trace import Trace


def step(trace: Trace) -> Step:
    """Medians over the steps that the view `steps` counts; None where the trace does not tell."""
    counted = _counted(trace)
    host, device = _milliseconds(counted["host_time"]), _milliseconds(counted["device_time"])
    return Step(
        count=counted.height,
        device_ms=median(device) if device else None,
        host_ms=median(host) if host else None,
        regime=regime(trace),
    )


def step_times_ms(trace: Trace) -> list[float]:
    """The counted steps' times on the device, or on the host where the device tells none."""
    counted = _counted(trace)
    return _milliseconds(counted["device_time"]) or _milliseconds(counted["host_time"])


def _counted(trace: Trace) -> pl.DataFrame:
    return trace.view("steps").filter(pl.col("counted"))


def _milliseconds(times: pl.Series) -> list[float]:
    return [time / 1e6 for time in times.drop_nulls().to_list()]
