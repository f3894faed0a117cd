"""Estimates what a step that computes on a CPU takes on a GPU: a roofline of its operators' work.

The device needs for each operator the time of its operations at the peak rate of their dtype, or of
the bytes that it must move, whichever is longer, at the share of the peak that kernels reach, and
the time of the shortest kernels. The host needs its Python as now, and the dispatch of each
operator. The longer of the two bounds a step. Nothing of that is measured, so that the interval is
wide: its shares and times were chosen so that on thirteen recordings from GPUs the
device's time of all modelled operators lies in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime import names
from selftime.advice.account.account_building import account_of_step
from selftime.analysis.call_tree.self_times import self_times
from selftime.analysis.models.modelled_operator_work import (
    MODELLED_DTYPES,
    ModelledOperatorWork,
    modelled_work_of_calls,
    outermost_modelled_operators,
)
from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.array_types import Floats, Ints
from selftime.devices import PEAK_RATES_BY_DEVICE_NAME, DevicePeakRates
from selftime.errors import UnreadableTrace, UsageError
from selftime.trace import Trace

_NS_PER_MS: Final = 1e6
_NS_PER_SECOND: Final = 1e9


@dataclass(frozen=True, slots=True)
class _Assumptions:
    """What is assumed of the device and of the host that launches its work."""

    peak_share: float
    """Share of its peak rates that the device reaches."""
    kernel_ns: float
    """Time in ns that each operator takes on the device at least, beside its work."""
    dispatch_ns: float
    """Time in ns that each operator takes on the host."""
    uses_tf32: bool
    """Whether float32 products run on tensor cores, as TF32."""


_BEST: Final = _Assumptions(0.8, 1_500.0, 4_000.0, True)
_LIKELY: Final = _Assumptions(0.5, 6_000.0, 8_000.0, False)
_WORST: Final = _Assumptions(0.2, 16_000.0, 15_000.0, False)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time in ms with an interval."""

    ms: float
    low_ms: float
    high_ms: float


@dataclass(frozen=True, slots=True)
class DeviceEstimate:
    """What a step of a program on a CPU would take on a GPU, by a roofline; nothing is measured."""

    trace: str
    """Where the trace was read from."""
    devices: tuple[str, ...]
    """The devices of the name that was asked for; the interval holds all of them."""
    step_ms: float
    """The mean step on the CPU, in ms."""
    step: TimeRange
    """The step with the device."""
    device: TimeRange
    """How long the device works in a step."""
    host: TimeRange
    """How long the host takes in a step to run its Python and to issue the work."""
    launches: float
    """The number of operators a step that would launch work."""
    modelled_share: float
    """Share of the operators' time on the CPU whose work is known by their shapes, 0 to 1."""


def estimate_on_device(trace: Trace, device: str) -> DeviceEstimate:
    """Estimates what the mean step of a trace without a device would take on a named device.

    Args:
        trace: A trace of a program that computes on the CPU, with input shapes.
        device: A device's name or the beginning of it, such as `A100`.

    Raises:
        UsageError: No known device has that name, or the trace has work of a device already.
        UnreadableTrace: The trace holds no step, or no operator whose work is known.
    """
    peaks = _peaks_of_devices(device)
    if trace.device_args.height:
        raise UsageError("`--device` is for programs on a CPU, and this trace has work of a device")
    host, account = self_times(trace), account_of_step(trace, ())
    work = modelled_work_of_calls(trace)
    windows = counted_step_windows(trace)
    slices = trace.slices.select("category", "start")[host.id]
    is_inside = is_instant_in_windows(slices["start"].to_numpy(), windows)
    is_operator = slices["category"].is_in(list(names.OPERATOR_CATEGORIES)).to_numpy() & is_inside
    share = _share(host.self_cpu[is_operator & work.is_modelled], host.self_cpu[is_operator])
    if account is None or not share:
        raise UnreadableTrace(_unknown_work_sentence(trace))
    mine = np.flatnonzero(outermost_modelled_operators(host.parent, work) & is_inside)
    launches = mine.size / max(windows.height, 1)
    computing_ms = sum(part.ms for part in account.parts if part.time_class == "compute")
    other_ms = account.step_ms - computing_ms
    on_device, on_host = [], []
    for rates, assumed in ((peaks, _LIKELY), (peaks, _BEST), (peaks, _WORST)):
        times = [_device_ns(one, assumed, work)[mine].sum() / _NS_PER_MS for one in rates]
        time = max(times) if assumed is _WORST else min(times)
        on_device.append(float(time) / max(windows.height, 1))
        on_host.append(other_ms + launches * assumed.dispatch_ns / _NS_PER_MS)
    unmodelled_ms = computing_ms * (1 - share)
    on_device[0] /= share
    on_device[2] += unmodelled_ms
    return DeviceEstimate(
        trace=trace.source,
        devices=tuple(_device_names(device)),
        step_ms=account.step_ms,
        step=TimeRange(
            max(on_device[0], on_host[0]),
            max(on_device[1], on_host[1]),
            on_device[2] + on_host[2],
        ),
        device=TimeRange(*on_device),
        host=TimeRange(*on_host),
        launches=launches,
        modelled_share=share,
    )


def _unknown_work_sentence(trace: Trace) -> str:
    lacks = missing_requirement_sentences(trace, ("operators", "shapes"))
    needs = f"; that needs {lacks[0]}" if lacks else ""
    return f"`{trace.source}` does not tell the work of operators in a step{needs}"


def _share(part: Ints, whole: Ints) -> float:
    return float(part.sum() / whole.sum()) if whole.sum() else 0.0


def _device_ns(peaks: DevicePeakRates, assumed: _Assumptions, work: ModelledOperatorWork) -> Floats:
    """Returns how long a device works on each operator, in ns."""
    rates = np.array([_rate(peaks, name, assumed) for name in (*MODELLED_DTYPES, "")])
    is_product = work.lacks_peak_rate
    computing = np.where(is_product, work.flops / rates[work.dtype], 0.0)
    least = np.maximum(computing, work.bytes / peaks.bytes) * _NS_PER_SECOND
    return least / assumed.peak_share + assumed.kernel_ns


def _rate(peaks: DevicePeakRates, dtype: str, assumed: _Assumptions) -> float:
    """Returns the peak FLOP/s in a dtype; that of float32 where the device does not list it."""
    single = peaks.operations.get("float32", 0.0)
    if dtype == "float32" and assumed.uses_tf32:
        single = max(single, peaks.operations.get("tf32", 0.0))
    return peaks.operations.get(dtype, single) if dtype != "float32" else single


def _device_names(device: str) -> Sequence[str]:
    wanted = device.strip().lower()
    known = sorted(PEAK_RATES_BY_DEVICE_NAME)
    equal = [name for name in known if name.lower() == wanted]
    return equal or [name for name in known if wanted and name.lower().startswith(wanted)]


def _peaks_of_devices(device: str) -> list[DevicePeakRates]:
    """Returns the peak rates of the devices with a name, or one that begins so."""
    found = [peaks for name in _device_names(device) for peaks in PEAK_RATES_BY_DEVICE_NAME[name]]
    if not found:
        known = ", ".join(sorted({name.split()[0] for name in PEAK_RATES_BY_DEVICE_NAME}))
        raise UsageError(f"the peak rates of `{device[:60]}` are not known; known are: {known}")
    return found
