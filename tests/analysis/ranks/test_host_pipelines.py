"""A pipeline whose ranks compute on the CPU, and exchange messages through Gloo."""

import json
from pathlib import Path
from typing import Any

import pytest

from selftime.analysis.ranks.job_imbalance import job_imbalance
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.ingest.load import load

STEPS, MICRO_BATCHES = 4, 4
FIRST_US, SECOND_US, MESSAGE_US, CALL_US = 1000, 2000, 20, 5


class Writer:
    """Writes what one rank does, in us from the begin of the job."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.events: list[dict[str, Any]] = []

    def add(self, name: str, category: str, begin: int, end: int, inputs: list[str]) -> None:
        args = {"Concrete Inputs": inputs, "Input Dims": [[64]], "Input type": ["float"]}
        event = {"name": name, "cat": category, "ts": begin, "dur": end - begin, "args": args}
        self.events.append({"ph": "X", "pid": 1, "tid": 1} | event)

    def message(self, kind: str, begin: int, end: int) -> None:
        call = "c10d::recv_" if kind == "recv" else "c10d::send"
        self.add(call, "cpu_op", begin, begin + CALL_US, ["", "", str(1 - self.rank), "0"])
        self.add(f"gloo:{kind}", "user_annotation", begin + CALL_US, end, [])

    def content(self) -> str:
        info = {"backend": "gloo", "rank": self.rank, "world_size": 2}
        origin = 1_760_000_000_000_000_000
        return json.dumps(
            {
                "distributedInfo": info,
                "baseTimeNanoseconds": origin,
                "traceEvents": self.events,
            }
        )


def write_pipeline(folder: Path, first_us: int, second_us: int) -> float:
    """Writes the traces of two stages; the first waits for an answer after the last micro-batch.

    Returns how long a step takes, in us.
    """
    first, second = Writer(0), Writer(1)
    at = 100
    step_us = 0
    for number in range(STEPS):
        begin, ready, free = at, at, at
        for _ in range(MICRO_BATCHES):
            first.add("aten::mm", "cpu_op", ready, ready + first_us, [])
            ready += first_us
            sent = ready + CALL_US
            arrived = max(sent, free + CALL_US) + MESSAGE_US
            first.message("send", ready, arrived)
            second.message("recv", free, arrived)
            second.add("aten::mm", "cpu_op", arrived, arrived + second_us, [])
            ready, free = ready + 2 * CALL_US, arrived + second_us
        answered = max(ready, free) + CALL_US + MESSAGE_US
        second.message("send", free, answered)
        first.message("recv", ready, answered)
        at = answered + 10
        step_us = at - begin
        for writer in (first, second):
            writer.add(f"ProfilerStep#{number}", "user_annotation", begin, at, [])
    for writer in (first, second):
        (folder / f"rank{writer.rank}.json").write_text(writer.content())
    return step_us


def test_the_stage_with_more_to_compute_is_found(tmp_path: Path) -> None:
    step_us = write_pipeline(tmp_path, FIRST_US, SECOND_US)
    found = job_imbalance(Ranks.of(load(tmp_path, cache=False)))
    assert found is not None
    assert found.stage_of_rank == {0: 0, 1: 1}
    assert found.load_of_stage == {0: pytest.approx(2 / 3), 1: pytest.approx(4 / 3)}
    assert found.recorded.with_unknown_waits / 1e3 == pytest.approx(step_us, rel=0.01)
    (tmp_path / "equal").mkdir()
    mean = (FIRST_US + SECOND_US) // 2
    equal_us = write_pipeline(tmp_path / "equal", mean, mean)
    assert equal_us < 0.85 * step_us
    without = found.without_stage_imbalance.with_unknown_waits / 1e3
    assert without == pytest.approx(equal_us, rel=0.02)
    assert found.slow_ranks == []


def test_stages_that_are_alike_have_no_imbalance(tmp_path: Path) -> None:
    write_pipeline(tmp_path, FIRST_US, FIRST_US)
    found = job_imbalance(Ranks.of(load(tmp_path, cache=False)))
    assert found is not None
    saved, _ = found.recorded.longer_than(found.without_stage_imbalance)
    assert abs(saved) < 0.001 * found.recorded.with_unknown_waits
