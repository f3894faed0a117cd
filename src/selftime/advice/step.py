"""The typical step of a trace: the scale on which every saving is measured."""

from statistics import median

from selftime.advice.answer import Regime, Step
from selftime.trace import Trace

__all__ = ["step", "step_times_ms"]


def step(trace: Trace) -> Step:
    """Medians over the steps that count; what the trace does not tell is None."""
    steps = trace.view("steps").filter("counted")
    host = _milliseconds(steps["host_time"].drop_nulls().to_list())
    device = _milliseconds(steps["device_time"].drop_nulls().to_list())
    return Step(
        count=steps.height,
        device_ms=median(device) if device else None,
        host_ms=median(host) if host else None,
        regime=_regime(trace),
    )


def step_times_ms(trace: Trace) -> list[float]:
    """The steps' times on the device, or on the host where the device has none."""
    steps = trace.view("steps").filter("counted")
    device = steps["device_time"].drop_nulls()
    return _milliseconds((device if device.len() else steps["host_time"].drop_nulls()).to_list())


def _milliseconds(nanoseconds: list[int]) -> list[float]:
    return [time / 1e6 for time in nanoseconds]


def _regime(trace: Trace) -> Regime | None:
    """Only `host-only` can be told before the device's gaps have a view of their own."""
    is_host_only = trace.slices.height and not trace.device_args.height
    return "host-only" if is_host_only else None
