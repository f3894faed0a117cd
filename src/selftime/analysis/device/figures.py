"""What each device is, and how well it is used, as figures of an overview."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from selftime import units
from selftime.analysis.device.utilisation import utilisation
from selftime.analysis.health.recording import is_mostly_lost
from selftime.analysis.steps.steady_steps import counted_spans
from selftime.trace import Trace
from selftime.units import Unit, share_text

_SECTION: Final = "device"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, or one word, with its definition; a value of None is not known."""

    section: str
    metric: str
    value: float | None
    unit: Unit
    definition: str
    words: str | None = None
    """What people read, where it is not the value in its unit."""
    device: int | None = None
    share: float | None = None
    """Of the whole that the figure is a part of."""

    @property
    def text(self) -> str | None:
        if self.words is not None or self.value is None:
            return self.words
        text = units.text(self.value, self.unit)
        return text if self.share is None else f"{text} ({units.text(self.share, 'ratio')})"


def ratio(
    section: str, metric: str, part: float | None, whole: float | None, definition: str
) -> Figure:
    """The figure of a share; unknown if the part is, or if there is no whole."""
    value = None if part is None or not whole else part / whole
    return Figure(section, metric, value, "ratio", definition)


def device_figures(trace: Trace, steps: pl.DataFrame) -> Iterator[Figure]:
    """The figures of every device that did work, in those of the judged steps that count."""
    described = {row["id"]: row for row in trace.devices.iter_rows(named=True)}
    for used in utilisation(trace, counted_spans(steps)).iter_rows(named=True):
        about = described.get(used["properties"], {})
        if is_mostly_lost(trace):
            used["window"] = None  # of what share it was busy is not known
        for figure in (*_described(about), *_busy(used), *_filled(used), *_tensor_cores(used)):
            yield replace(figure, device=used["device"])


def _described(about: dict[str, Any]) -> Iterator[Figure]:
    major, minor = about.get("compute_major"), about.get("compute_minor")
    version = None if major is None else f"{major}.{minor or 0}"
    name = about.get("name")
    yield Figure(_SECTION, "name", None, "text", "The device as its driver names it.", name)
    yield Figure(_SECTION, "memory", about.get("memory"), "bytes", "All memory of the device.")
    text = "The version of the device's architecture."
    yield Figure(_SECTION, "compute capability", None, "text", text, version)
    many = about.get("multiprocessors")
    yield Figure(_SECTION, "multiprocessors", many, "count", "SMs; on AMD, compute units.")


def _busy(used: dict[str, Any]) -> Iterator[Figure]:
    whole = used["window"]
    for metric, column, what in (
        ("busy", "busy", "any work, copies and fills too"),
        ("kernel busy", "kernel_busy", "a kernel"),
        ("compute busy", "compute_busy", "a kernel other than a collective"),
    ):
        text = f"Share of the counted steps' time with {what}."
        yield ratio(_SECTION, metric, used[column], whole, text)


def _filled(used: dict[str, Any]) -> Iterator[Figure]:
    """The estimates of how much of the device its kernels fill."""
    kernels = used["kernel_time"]
    untold = 1 - used["sized_time"] / kernels if kernels else 0.0
    text = "Share of that time in which the average multiprocessor had a block, estimated."
    figure = ratio(_SECTION, "SM efficiency", used["sm_time"], used["window"], text)
    if untold and figure.value is not None:
        told = f"{text} The grids of {share_text(untold)} of kernel time are not known."
        words = f"at least {share_text(figure.value)}"
        figure = replace(figure, definition=told, words=words)
    yield figure
    text = "Achieved occupancy, estimated by the recorder, weighted by kernel time."
    occupied, time = used["occupied_time"], used["occupancy_time"]
    yield ratio(_SECTION, "occupancy", occupied, time, text)
    counts = f"{used['occupancy_kernels']:,} of {used['kernels']:,} kernels"
    text = f"Share of kernel time that has such an estimate: {counts}."
    yield ratio(_SECTION, "occupancy known", time, kernels, text)


def _tensor_cores(used: dict[str, Any]) -> Iterator[Figure]:
    whole, yes, no = used["compute_time"], used["tensor_time"], used["plain_time"]
    for metric, time, what in (
        ("tensor cores", yes, "which use tensor or matrix cores, by their names"),
        ("no tensor cores", no, "which use none, by their names"),
        ("tensor cores unknown", whole - yes - no, "whose names do not tell"),
    ):
        text = f"Share of the time of computing kernels {what}."
        yield ratio(_SECTION, metric, time, whole, text)
