"""How exact the what-if replay is, and how fast.

    python benchmarks/replay.py [TRACE.json[.gz] ...]

For each trace: how far the replay of the unchanged program is from the recording, in all and at
most for one call or kernel, and the seconds to read the program and to run it. Then a generated
program of a million launches. The pair of ResNet recordings of 2021, if it is among the traces:
the step that is predicted without waiting for data, against the recording with workers.
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np

import selftime
from selftime.advice import advise
from selftime.advice.replay.graph_simulation import recorded_costs, simulate
from selftime.analysis.graph.building import dependency_graph
from selftime.analysis.graph.dependency_graphs import (
    DependencyGraph,
    GraphCalls,
    GraphDeviceWork,
    GraphStreamWaits,
    LastDependenciesOfWork,
)
from selftime.nesting import NO_SLICE

LAUNCHES = 1_000_000
SLOW, FAST = "v100-2021-resnet50-workers0", "v100-2021-resnet50-workers4"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("traces", type=Path, nargs="*")
    traces = {path: opened(path) for path in parser.parse_args().traces}
    print(f"{'trace':46}{'span ms':>10}{'error %':>9}{'worst us':>10}{'read s':>8}{'run s':>8}")
    for path, trace in traces.items():
        identity(path.name.partition(".")[0], trace)
    generated()
    pair = [trace for name in (SLOW, FAST) for path, trace in traces.items() if name in path.name]
    if len(pair) == 2:
        truth(*pair)


def opened(path: Path) -> selftime.Trace:
    trace = selftime.load(path)
    if not isinstance(trace, selftime.Trace):
        raise SystemExit(f"`{path}` is a folder; name a trace")
    return trace


def identity(name: str, trace: selftime.Trace) -> None:
    begin = perf_counter()
    graph = dependency_graph(trace)
    read = perf_counter() - begin
    row(name, graph, read)


def row(name: str, graph: DependencyGraph, read: float) -> None:
    begin = perf_counter()
    outcome = simulate(graph, recorded_costs(graph))
    run = perf_counter() - begin
    recorded = np.concatenate([graph.calls.end, graph.work.end])
    replayed = np.concatenate([outcome.call_end, outcome.work_end])
    span = int(recorded.max(initial=graph.begin)) - graph.begin
    error = 100 * (int(replayed.max(initial=graph.begin)) - graph.begin - span) / max(span, 1)
    worst = int(np.abs(replayed - recorded).max(initial=0)) / 1e3
    print(f"{name:46}{span / 1e6:>10.1f}{error:>9.3f}{worst:>10.3f}{read:>8.2f}{run:>8.2f}")


def generated() -> None:
    """Launches of 5 us each, of kernels of 4 us on one stream."""
    number = np.arange(LAUNCHES, dtype=np.int64)
    nothing, zero = np.full(LAUNCHES, NO_SLICE), np.zeros(LAUNCHES, np.int64)
    no, none = np.zeros(LAUNCHES, bool), np.zeros(0, np.int64)
    calls = GraphCalls(
        id=number, wait_slice=number, thread=zero, start=5_000 * number, end=5_000 * number + 4_000,
        host_time_before=np.where(number == 0, 0, 1_000), own_time=np.full(LAUNCHES, 4_000),
        awaited_work=nothing, awaited_stream=nothing, awaited_call=nothing,
        delay_after_condition=zero, is_condition_recorded=no, released_by=nothing,
        first_work=number, last_work=number + 1, step=nothing, is_collective=no,
    )  # fmt: skip
    start = 5_000 * number + 6_000
    work = GraphDeviceWork(
        id=number, stream=zero, start=start, end=start + 4_000,
        launch_latency=np.full(LAUNCHES, 6_000), gap_after_previous_work=np.full(LAUNCHES, 1_000),
    )  # fmt: skip
    waits = GraphStreamWaits(none, none, none, none.astype(bool))
    bindings = LastDependenciesOfWork(
        link_code=zero, awaited_work=nothing, call=number, kind_code=zero, has_unknown_wait=no
    )
    row("a million launches", DependencyGraph(calls, work, waits, bindings, 0, 1, 1), 0.0)


def truth(slow: selftime.Trace, fast: selftime.Trace) -> None:
    advice = advise(slow)
    found = [finding for finding in advice.findings if finding.rule == "slow_input"]
    step = slow.view("steps").filter("counted")["device_time"].median()
    measured = fast.view("steps").filter("counted")["device_time"].median()
    if not found or not isinstance(step, float) or not isinstance(measured, float):
        print("the pair holds no data loading to predict")
        return
    predicted = step / 1e6 - (found[0].saving.estimate_ms or 0.0)
    error = 100 * (predicted * 1e6 / measured - 1)
    print(f"data loading repaired: {predicted:.1f} ms predicted, {measured / 1e6:.1f} ms measured")
    print(f"({error:+.1f} %), from {step / 1e6:.1f} ms")


if __name__ == "__main__":
    main()
