"""Events drawn from a fuzzer's choices, and what holds for every trace however odd."""

import json
from typing import Any, Final, Protocol

import polars as pl

from selftime.trace import Trace

__all__ = ["Choices", "check_trace", "document"]

_KINDS: Final = (
    "cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "kernel",
    "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation", "overhead", "other",
)  # fmt: skip
_NAMES: Final = ("a", "b", "record_param_comms", "ProfilerStep#1", "f.py(3): f", "[memory]")
_IDS: Final = ("External id", "correlation", "Sequence number", "Python id", "Python parent id")
_PHASES: Final = "XXXXXXBEibnesfMC"
_MOST_EVENTS: Final = 60


class Choices(Protocol):
    """What draws numbers from a fuzzer's bytes, as atheris' FuzzedDataProvider."""

    def ConsumeIntInRange(self, low: int, high: int) -> int: ...  # noqa: N802 - atheris' name
    def remaining_bytes(self) -> int: ...


def document(choices: Choices) -> tuple[bytes, int]:
    """A trace whose times, threads and ids are few, so that they meet; and its complete events."""
    events: list[dict[str, Any]] = []
    draw = choices.ConsumeIntInRange
    while choices.remaining_bytes() and len(events) < _MOST_EVENTS:
        args: dict[str, Any] = {
            _IDS[draw(0, len(_IDS) - 1)]: draw(-1, 6) for _ in range(draw(0, 3))
        }
        args |= {"Fwd thread id": draw(0, 2), "device": draw(0, 1), "stream": draw(-1, 8)}
        events.append(
            {
                "ph": _PHASES[draw(0, len(_PHASES) - 1)],
                "cat": _KINDS[draw(0, len(_KINDS) - 1)],
                "name": _NAMES[draw(0, len(_NAMES) - 1)],
                "pid": draw(0, 1),
                "tid": draw(0, 2),
                "id": draw(0, 3),
                "ts": draw(0, 40) / 4,
                "dur": draw(-1, 60) / 4,
                "args": args,
            }
        )
    complete = sum(e["ph"] == "X" and e["name"] != "[memory]" for e in events)
    return json.dumps({"traceEvents": events}).encode(), complete


def check_trace(trace: Trace) -> None:
    """Hold what every trace promises: parents around their children, self times."""
    slices = trace.slices
    parents = slices.select(pl.all().name.prefix("above_")).rename({"above_id": "parent"})
    nested = slices.join(parents, on="parent", how="inner")
    end, above_end = (
        pl.col("start") + pl.col("duration"),
        pl.col("above_start") + pl.col("above_duration"),
    )
    broken = {
        "no negative time": slices.filter(
            (pl.col("start") < 0) | (pl.col("duration") < 0) | (pl.col("self") < 0)
        ).height,
        "self within duration": slices.filter(pl.col("self") > pl.col("duration")).height,
        "parents around children": nested.filter(
            (pl.col("above_start") > pl.col("start")) | (end > above_end)
        ).height,
        "children on their parent's track": nested.filter(
            pl.col("above_track") != pl.col("track")
        ).height,
        "links that lead somewhere": slices.filter(pl.col("launch") >= slices.height).height,
        "tracks that are there": slices.filter(pl.col("track") >= trace.tracks.height).height,
    }
    wrong = [what for what, found in broken.items() if found]
    if wrong:
        raise AssertionError(f"does not hold: {', '.join(wrong)}")
