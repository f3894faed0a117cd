"""Measures how long the steps load data, and how long they wait for data and do nothing else."""

from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.detectors.batch_delivery import (
    MIN_EXPOSED_LOADING_SHARE,
    Delivery,
    recorded_delivery,
    run_delivery,
)
from selftime.advice.detectors.batch_fetching import (
    epoch_boundary_worker_wait_times,
    mid_epoch_worker_wait_times,
)
from selftime.advice.detectors.counted_steps import slices_in_counted_steps
from selftime.advice.replay import CutHostTime, replay_of
from selftime.advice.rule_outcomes import Checked
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.main_thread import slices_on_main_thread
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, covered_time_before, length, subtract
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_EXPOSED_LOADING_MS: Final = 2.0
"""Shortest wait for data per step, in ms, for which worker processes are worth their cost: a worker
takes about a millisecond to hand over a batch."""


@dataclass(frozen=True, slots=True)
class DataLoadingTimes:
    """Durations of the typical step and of its data loading, in ms."""

    step_ms: float
    """The duration of the typical step in ms."""
    exposed_ms: float
    """Time in ms of the typical step in which it loads data, or waits for workers, and nothing else
    runs."""
    mean_exposed_ms: float
    """Mean of `exposed_ms` over the measured steps, in ms; it differs from the typical step if few
    steps wait."""
    at_epoch_ends_ms: float
    """Wait for workers at the begin and end of epochs, in ms per step."""
    total_ms: float
    """Time that the main thread spends in the DataLoader, in ms per step."""
    waiting_ms: float
    """Part of `total_ms` in Python functions that wait for storage, a socket or a timer; 0 if
    no Python functions were recorded."""
    noise_ms: float
    """Median absolute deviation of `exposed_ms` between steps, in ms."""
    waiting_share_by_step: tuple[float, ...]
    """Share of each measured step spent waiting for data, one value per step, 0 to 1."""
    step_without_loading_ms: float
    """Simulated duration of the step without data loading, in ms."""
    device_lag_ms: float
    """Time in ms from a step's end on the host to the end of its device work; median of the
    measured steps."""
    has_workers: bool
    has_device: bool
    delivery: Delivery = "unknown"
    """Whether workers are too slow for the loop, or late now and then; over the run if its ledger
    tells."""
    slices: NDArray[np.integer] | None = field(default=None, compare=False, repr=False)
    """Ids of the slices in which measured steps load data, as evidence for a finding."""

    @property
    def exposed_share(self) -> float:
        """Share of the typical step in which it only loads or awaits data, 0 to 1."""
        return min(1.0, self.exposed_ms / self.step_ms)

    @property
    def is_small_share(self) -> bool:
        """Returns whether the wait for data is a small part of the step."""
        return self.exposed_ms < MIN_EXPOSED_LOADING_SHARE * self.step_ms

    @property
    def is_small(self) -> bool:
        """Returns whether steps wait for data so briefly that workers are not worth their cost."""
        return (
            self.is_small_share
            or max(self.exposed_ms, self.mean_exposed_ms) < MIN_EXPOSED_LOADING_MS
        )

    @property
    def waiting_steps(self) -> list[int]:
        """The indices of the measured steps that wait for data for over 5 % of their time."""
        return _waiting_steps(self.waiting_share_by_step)


@cached_per_trace
def data_loading_times_of(trace: Trace) -> DataLoadingTimes | None:
    """Returns how long measured steps load data and wait for it; None if no loading is seen."""
    limits = step_statistics(trace)
    steps = trace.view("steps").filter(pl.col("counted") & pl.col("loading").is_not_null())
    loading = _loading_slices(trace)
    if limits is None or not steps.height or not loading.height:
        return None
    time = "device_time" if steps["device_time"].null_count() < steps.height else "host_time"
    told = steps.filter(pl.col(time).is_not_null())
    has_workers = not filter_by_name(loading, names.loads_on_main_thread).height
    exposed, at_epoch_ends = told["data_loading"].to_list(), []
    if has_workers:
        exposed = _exposed_wait_ns_by_step(trace, told, mid_epoch_worker_wait_times(trace))
        at_epoch_ends = _exposed_wait_ns_by_step(
            trace, told, epoch_boundary_worker_wait_times(trace)
        )
    times: list[int] = told[time].to_list()
    step = _median_ms(times)
    step_without_loading = limits.scaled_to_typical_step(
        replay_of(trace).step_time(change_shortening_loading(trace)) / 1e6
    )
    total = max(
        _median_ms(told["loading"].to_list()), step - step_without_loading
    )  # of medians, parts need not fit
    shares = tuple(part / max(whole, 1) for part, whole in zip(exposed, times, strict=True))
    return DataLoadingTimes(
        step_ms=step,
        exposed_ms=_typical_exposed_loading_ms(exposed, limits, is_average=has_workers),
        mean_exposed_ms=fmean(exposed) / 1e6 if exposed else 0.0,
        at_epoch_ends_ms=_typical_exposed_loading_ms(at_epoch_ends, limits, is_average=True),
        total_ms=total,
        waiting_ms=_waiting_share_of_loading(trace) * total,
        noise_ms=_median_absolute_deviation_ms(exposed),
        waiting_share_by_step=shares,
        step_without_loading_ms=step_without_loading,
        device_lag_ms=_median_ms(told["lag"].drop_nulls().to_list()),
        has_workers=has_workers,
        has_device=time == "device_time",
        delivery=recorded_delivery(trace, _waiting_steps(shares), shares)
        if has_workers
        else "unknown",
        slices=loading["id"].to_numpy(),
    )


def _loading_slices(trace: Trace) -> pl.DataFrame:
    """Returns the slices in which measured steps load data, as `data_loading_annotations` does."""
    loading = filter_by_name(slices_on(trace, "host", ended=True), names.is_data_loading)
    return slices_in_counted_steps(trace, loading)


def _waiting_steps(waiting_share_by_step: tuple[float, ...]) -> list[int]:
    """Returns the indices of the steps that wait for data for over 5 % of their time."""
    return [
        at for at, share in enumerate(waiting_share_by_step) if share > MIN_EXPOSED_LOADING_SHARE
    ]


def outcome_of_brief_waits(trace: Trace, loading: DataLoadingTimes) -> Checked:
    """Returns what is known of workers for which recorded steps wait briefly, or now and then."""
    longer = longer_waits_of_run_text(trace) if loading.is_small else None
    if longer is not None:
        return Checked(longer)
    late, steps = len(loading.waiting_steps), len(loading.waiting_share_by_step)
    reason = f"the loop waits for a worker in {late} of {steps} steps"
    return Checked(reason, loading.exposed_ms, is_slowed=False)


def longer_waits_of_run_text(trace: Trace) -> str | None:
    """Returns that a run waits for its workers, of one whose recorded steps hardly do; or None."""
    found = run_delivery(trace)
    if found is None or found.waiting_share <= MIN_EXPOSED_LOADING_SHARE:
        return None
    return (
        f"the recorded steps hardly wait for workers, but {found.late_count} of the "
        f"{found.step_count} steps of the run do, {whole_percent_text(found.waiting_share)} of "
        "their time: see `data_waits_of_run`"
    )


def change_shortening_loading(trace: Trace, kept_share: float = 0.0) -> CutHostTime:
    """Returns a change, for simulation, that shortens data loading to the share `kept_share`."""
    loading = filter_by_name(slices_on(trace, "host"), names.is_data_loading)
    return CutHostTime(covered_time(slices_on_main_thread(trace, loading)), kept_share)


def data_loading_annotations(trace: Trace) -> list[dict[str, Any]]:
    """Returns the rows of the view `annotations` that are about data loading."""
    regions = trace.view("annotations").iter_rows(named=True)
    return [row for row in regions if names.is_data_loading(row["name"])]


def _exposed_wait_ns_by_step(trace: Trace, steps: pl.DataFrame, waits: Intervals) -> list[int]:
    """Returns for each step the ns within `waits` in which no device worked."""
    exposed = subtract(waits, covered_time(device_work(trace)))
    start = steps["start"].to_numpy()
    found: list[int] = (
        covered_time_before(exposed, start + steps["host_time"].to_numpy())
        - covered_time_before(exposed, start)
    ).tolist()
    return found


def _typical_exposed_loading_ms(
    step_times: list[int], limits: StepStatistics, *, is_average: bool
) -> float:
    """Returns the median of times in ns, in ms; if `is_average` the mean, where that is larger."""
    if not step_times:
        return 0.0
    common = median(step_times) / 1e6
    return (
        max(common, limits.scaled_to_typical_step(fmean(step_times) / 1e6))
        if is_average
        else common
    )


def _waiting_share_of_loading(trace: Trace) -> float:
    """Returns the share of data loading in Python functions that wait, as for storage; 0 to 1.

    It is 0 if no Python frames were recorded.
    """
    thread = pl.col("track").replace_strict(trace.tracks["id"], trace.tracks["thread"])
    host, python = slices_on(trace, "host"), slices_on(trace, "python")
    loading = filter_by_name(host, lambda name: name.startswith(names.DATA_LOADING_PREFIX))
    frames = filter_by_name(python, names.is_waiting_frame)
    by_thread = frames.with_columns(thread).partition_by("track", as_dict=True)
    whole = waiting = 0
    for key, marks in loading.with_columns(thread).partition_by("track", as_dict=True).items():
        periods = covered_time(marks)
        whole += length(periods)
        if key in by_thread:
            found = by_thread[key]
            start = found["start"].to_numpy()
            inside = covered_time_before(periods, start + 1) > covered_time_before(periods, start)
            waiting += int(found["self"].fill_null(0).to_numpy()[inside].sum())
    return min(1.0, waiting / whole) if whole else 0.0


def _median_ms(times: list[int]) -> float:
    """Returns the median in ms of `times` in ns; 0 if `times` is empty."""
    return median(times) / 1e6 if times else 0.0


def _median_absolute_deviation_ms(times: list[int]) -> float:
    """Returns the median absolute deviation in ms of `times` in ns; 0 if `times` is empty."""
    middle = median(times) if times else 0
    return median(abs(time - middle) for time in times) / 1e6 if times else 0.0
