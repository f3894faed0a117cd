"""How long the steps that count wait for data, and what else of loading there is."""

from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.batch_fetching import waits_around_epochs, waits_for_workers
from selftime.advice.detectors.recorded_facts import Workers
from selftime.advice.gate import Gate, gate
from selftime.advice.replay import Cut, replay_of
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_work
from selftime.analysis.main_thread import on_main_thread
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, before, length, subtract
from selftime.trace import Trace

EXPOSED_SHARE: Final = 0.05
"""Exposed loading below this share of the step is not worth worker processes."""

EXPOSED_MS: Final = 2.0
"""Nor is it below this time: a worker hands a batch to the loop in about a millisecond."""

STEADY: Final = 0.5
"""Workers that are too slow make more than so many of the steps wait."""

FEWEST_GAPS: Final = 2
"""So many equal distances between steps that wait are a rhythm; one distance is none."""


@dataclass(frozen=True, slots=True)
class Loading:
    """The typical step and its data loading, in ms."""

    step: float
    exposed: float
    """Loading while nothing else ran; with workers, only what the loop waited for one."""
    average: float
    """The same on average over the steps, and not in the typical one: waits come in bursts."""
    around: float
    """With workers, what it waited for them besides: as an epoch began or ended."""
    total: float
    """Time in the loader on the main thread; no less than the step is shorter without it."""
    waiting: float
    """Of that, in frames that wait for storage, a socket or a timer; 0 where none was recorded."""
    noise: float
    """How the exposed loading varies from step to step."""
    shares: tuple[float, ...]
    """Exposed share of each step."""
    rest: float
    """The step without its loading, by the replay."""
    lag: float
    """How far the device is behind the host."""
    has_workers: bool
    has_device: bool

    @property
    def is_small(self) -> bool:
        """Whether what is exposed is not worth a change."""
        few = self.exposed < EXPOSED_SHARE * self.step
        return few or max(self.exposed, self.average) < EXPOSED_MS

    @property
    def waiting_steps(self) -> list[int]:
        """The steps that wait, by their place among those that count."""
        return [at for at, share in enumerate(self.shares) if share > EXPOSED_SHARE]

    def is_steady(self, workers: Workers | None) -> bool:
        """Whether batches come too late all the time: in most steps, or in a strict rhythm.

        Workers that began together end together, so that starved loops wait once in so many steps
        as there are workers. Workers that never rest are too slow, whatever the rhythm.
        """
        late = self.waiting_steps
        if len(late) > STEADY * len(self.shares) or (workers is not None and workers.never_rest):
            return True
        gaps = np.diff(late).tolist()
        if len(set(gaps)) != 1:
            return False
        return len(gaps) >= FEWEST_GAPS or (workers is not None and gaps[0] == workers.count)


@cached_per_trace
def loading_of(trace: Trace) -> Loading | None:
    """The data loading of the steps that count; None if the trace names no loader."""
    limits = gate(trace)
    steps = trace.view("steps").filter(pl.col("counted") & pl.col("loading").is_not_null())
    rows = regions_of_loading(trace)
    if limits is None or not steps.height or not rows:
        return None
    time = "device_time" if steps["device_time"].null_count() < steps.height else "host_time"
    told = steps.filter(pl.col(time).is_not_null())
    has_workers = not any(names.loads_on_main_thread(row["name"]) for row in rows)
    exposed, around = told["data_loading"].to_list(), []
    if has_workers:
        exposed = _within(trace, told, waits_for_workers(trace))
        around = _within(trace, told, waits_around_epochs(trace))
    times: list[int] = told[time].to_list()
    step = _middle(times)
    rest = limits.typical(replay_of(trace).step_time(cut(trace)) / 1e6)
    total = max(_middle(told["loading"].to_list()), step - rest)  # of medians, parts need not fit
    return Loading(
        step=step,
        exposed=_typical(exposed, limits, is_average=has_workers),
        average=fmean(exposed) / 1e6 if exposed else 0.0,
        around=_typical(around, limits, is_average=True),
        total=total,
        waiting=_waiting_share(trace) * total,
        noise=_deviation(exposed),
        shares=tuple(part / max(whole, 1) for part, whole in zip(exposed, times, strict=True)),
        rest=rest,
        lag=_middle(told["lag"].drop_nulls().to_list()),
        has_workers=has_workers,
        has_device=time == "device_time",
    )


def cut(trace: Trace, keep: float = 0.0) -> Cut:
    """The time in which the main thread loads data, or waits for workers that do."""
    loading = filter_by_name(slices_on(trace, "host"), names.is_data_loading)
    return Cut(covered_time(on_main_thread(trace, loading)), keep)


def regions_of_loading(trace: Trace) -> list[dict[str, Any]]:
    """The rows of the view `annotations` that load data."""
    regions = trace.view("annotations").iter_rows(named=True)
    return [row for row in regions if names.is_data_loading(row["name"])]


def _within(trace: Trace, steps: pl.DataFrame, waits: Intervals) -> list[int]:
    """How long each step waited so while no device worked, in ns."""
    exposed = subtract(waits, covered_time(device_work(trace)))
    start = steps["start"].to_numpy()
    found: list[int] = (
        before(exposed, start + steps["host_time"].to_numpy()) - before(exposed, start)
    ).tolist()
    return found


def _typical(exposed: list[int], limits: Gate, *, is_average: bool) -> float:
    """Of the typical step: waits for workers come in bursts, and are averaged."""
    if not exposed:
        return 0.0
    common = median(exposed) / 1e6
    return max(common, limits.typical(fmean(exposed) / 1e6)) if is_average else common


def _waiting_share(trace: Trace) -> float:
    """How much of the loading lies in frames that wait, where frames were recorded."""
    thread = pl.col("track").replace_strict(trace.tracks["id"], trace.tracks["thread"])
    host, python = slices_on(trace, "host"), slices_on(trace, "python")
    loading = filter_by_name(host, lambda name: name.startswith(names.LOADING_PREFIX))
    frames = filter_by_name(python, names.is_waiting_frame)
    by_thread = frames.with_columns(thread).partition_by("track", as_dict=True)
    whole = waiting = 0
    for key, marks in loading.with_columns(thread).partition_by("track", as_dict=True).items():
        periods = covered_time(marks)
        whole += length(periods)
        if key in by_thread:
            found = by_thread[key]
            start = found["start"].to_numpy()
            inside = before(periods, start + 1) > before(periods, start)
            waiting += int(found["self"].fill_null(0).to_numpy()[inside].sum())
    return min(1.0, waiting / whole) if whole else 0.0


def _middle(times: list[int]) -> float:
    return median(times) / 1e6 if times else 0.0


def _deviation(times: list[int]) -> float:
    """The median absolute deviation, in ms."""
    middle = median(times) if times else 0
    return median(abs(time - middle) for time in times) / 1e6 if times else 0.0
