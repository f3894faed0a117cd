"""The results of the corpus as a page, and as JSON."""

import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import torch
from results import Result
from scores import Scores, Share, scores

__all__ = ["FORMAT", "HEAD", "as_json", "page", "row", "summary"]

FORMAT: Final = "selftime.corpus/1"
HEAD: Final = (
    "| entry | seed | planted | found | wrong | line | speed-up (95 %) | saved ms "
    "| promised ms (80 %) |\n|---|---|---|---|---|---|---|---|---|"
)
ABOUT: Final = (
    "What the advice says of small programs with planted bottlenecks, and what their repaired "
    "twins give; see [how it is measured](../corpus/README.md). `make corpus` makes this page."
)
FIRST_LINES_HEAD: Final = "| entry | planted | first line of the answer |\n|---|---|---|"
FIRST_LINES_ABOUT: Final = (
    "What the answer says first: what bounds the step, and its largest parts."
)
_NAMES: Final = {
    "programs": "programs with a planted cause",
    "controls": "controls",
    "precision": "precision",
    "recall": "recall",
    "macro_precision": "precision, mean over rules",
    "macro_recall": "recall, mean over labels",
    "top_cause": "first finding is a planted cause",
    "line_exact": "line exact",
    "line_function": "line exact, or function right",
    "alarms_a_control": "false alarms a control",
    "forbidden": "forbidden causes found",
    "gains": "repairs that are surely faster",
    "equal": "twins that compute the same",
    "error": "median error of a promise, as a factor",
    "covered": "gains within the promised interval",
    "above": "gains surely above the promised bound",
    "order": "pairs of causes in the right order",
    "joint_error": "median error of a joint promise, as a factor",
}


def row(result: Result) -> str:
    gain = result.gain
    found = [label for label in result.labels if label in result.found]
    lines = [result.line(label) for label in found]
    cells = (
        result.about.name + (" (held out)" if result.about.is_held_out else ""),
        str(result.seed),
        ", ".join(result.labels) or "control",
        ", ".join(found) or "-",
        ", ".join(sorted({finding.rule for finding in result.wrong})) or "-",
        ", ".join(sorted({line for line in lines if line})) or "-",
        f"{gain.speedup:.2f} ({gain.slowest:.2f} to {gain.fastest:.2f})" if gain else "-",
        f"{gain.saved_ms:.2f}" if gain else "-",
        _promised(result),
    )
    return f"| {' | '.join(cells)} |"


def first_line_row(result: Result) -> str:
    planted = ", ".join(result.labels) or "control"
    return f"| {result.about.name} | {planted} | {result.first_line or '-'} |"


def _promised(result: Result) -> str:
    hits = [f.saving for f in result.hits() if f.saving.estimate_ms is not None]
    told = (f"{s.estimate_ms:.2f} ({s.low_ms or 0:.2f} to {s.high_ms or 0:.2f})" for s in hits)
    return "; ".join(told) or "-"


def summary(results: Sequence[Result]) -> Iterator[str]:
    """A table of the metrics: of all, of those that rules may be tuned on, and of the others."""
    held = [result for result in results if result.about.is_held_out]
    rest = [result for result in results if not result.about.is_held_out]
    yield "| | all | seen | held out |"
    yield "|---|---|---|---|"
    parts = [scores(part) for part in (results, rest, held)]
    for field in fields(Scores):
        cells = (_NAMES[field.name], *(_told(getattr(part, field.name)) for part in parts))
        yield f"| {' | '.join(cells)} |"


def _told(value: Share | float | None) -> str:
    if isinstance(value, Share):
        share = value.value
        return "-" if share is None else f"{share:.0%} ({value.part} of {value.whole})"
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def page(results: Sequence[Result], left_out: Iterable[str]) -> str:
    """The page of the documentation; `make corpus` writes it."""
    absent = ", ".join(left_out)
    parts = [
        "# Corpus",
        ABOUT,
        f"Measured on {machine()}." + (f" Left out, for want of a GPU: {absent}." * bool(absent)),
        "## Figures",
        "\n".join(summary(results)),
        "## Programs",
        "\n".join((HEAD, *map(row, results))),
        "## First lines",
        FIRST_LINES_ABOUT,
        "\n".join((FIRST_LINES_HEAD, *map(first_line_row, results))),
    ]
    return "\n\n".join(parts) + "\n"


def machine() -> str:
    """What the figures were measured on."""
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ", no GPU"
    threads = torch.get_num_threads()
    return (
        f"{_processor()}, {os.cpu_count()} cores ({threads} threads){gpu}, "
        f"torch {torch.__version__}, Python {platform.python_version()}"
    )


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        told = []
    names = (line.partition(":")[2].strip() for line in told if line.startswith("model name"))
    return next(names, platform.machine())


def as_json(results: Sequence[Result], left_out: Sequence[str]) -> str:
    held = [result for result in results if result.about.is_held_out]
    answer = {
        "format": FORMAT,
        "machine": machine(),
        "left_out": list(left_out),
        "scores": asdict(scores(results)),
        "held_out": asdict(scores(held)),
        "results": [_values(result) for result in results],
    }
    return json.dumps(answer, indent=1, allow_nan=False)


def _values(result: Result) -> dict[str, Any]:
    gain = result.gain
    kept = result.verification()
    return {
        "entry": result.about.name,
        "seed": result.seed,
        "held_out": result.about.is_held_out,
        "labels": list(result.labels),
        "findings": [
            {"rule": f.rule, "covers": list(f.covers), "file": f.where.file, "line": f.where.line}
            for f in result.findings
        ],
        "lines": {label: result.line(label) for label in result.labels},
        "same": result.pair.is_same if result.pair else None,
        "gain": asdict(gain) if gain else None,
        "joint_ms": result.joint_ms,
        "first_line": result.first_line,
        "verification": json.loads(kept.to_json()) if kept else None,
    }
