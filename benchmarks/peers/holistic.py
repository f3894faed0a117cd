"""Holistic Trace Analysis on a trace: load it, then its breakdowns of time, kernels and overlap.

    python holistic.py TRACE.json[.gz]

Runs in the environment of HolisticTraceAnalysis, or of traceinsight, its successor.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hta.trace_analysis import TraceAnalysis


def main() -> None:
    begin = time.perf_counter()
    analysis = TraceAnalysis(trace_files={0: str(Path(sys.argv[1]).absolute())})
    loaded = time.perf_counter()
    answers: dict[str, Callable[[], object]] = {
        "temporal": lambda: analysis.get_temporal_breakdown(visualize=False),
        "kernels": lambda: analysis.get_gpu_kernel_breakdown(visualize=False),
        "overlap": lambda: analysis.get_comm_comp_overlap(visualize=False),
    }
    failures = {name: failure(answer) for name, answer in answers.items()}
    told = {
        "load_s": loaded - begin,
        "answers_s": time.perf_counter() - loaded,
        "events": len(analysis.t.get_trace(0)),
        "failed": {name: why for name, why in failures.items() if why},
    }
    print(json.dumps(told))


def failure(answer: Callable[[], object]) -> str | None:
    """How one of the breakdowns fails; the others are asked all the same."""
    try:
        answer()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told in the table
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    main()
