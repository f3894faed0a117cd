"""The advice for a job is one, about the rank that the others wait for."""

import json
from pathlib import Path

import pytest

from selftime.advice import advise
from selftime.ingest.load import load
from selftime.testing.simulated_jobs import RankDelay, simulate_job
from selftime.trace import Job


def read(folder: Path, traces: dict[int, bytes]) -> Job:
    for rank, text in traces.items():
        (folder / f"rank{rank}.json").write_bytes(text)
    found = load(folder, cache=False)
    assert isinstance(found, Job)
    return found


def test_it_is_about_the_rank_that_is_waited_for(tmp_path: Path) -> None:
    said = advise(
        read(tmp_path, simulate_job(ranks=4, steps=6, late=RankDelay(2, 8_000_000, "data")).traces)
    )
    assert said.trace is not None
    assert said.trace.source.endswith("rank2.json")
    # What makes its batches late is found on its own trace, and told beside it.
    assert {"slow_rank", "slow_input"} <= {finding.rule for finding in said.findings}
    [note] = [note for note in said.health.notes if note.check == "ranks"]
    assert note.text.startswith("of 4 ranks")
    assert note.text.endswith("the advice is about rank 2")


def test_fixes_of_the_slow_rank_are_not_added_up(tmp_path: Path) -> None:
    job = read(
        tmp_path, simulate_job(ranks=4, steps=6, late=RankDelay(2, 8_000_000, "data")).traces
    )
    said = advise(job)
    estimates = [one.saving.estimate_ms for one in said.findings if one.saving.estimate_ms]
    assert said.joint.estimate_ms is not None
    assert max(estimates) <= said.joint.estimate_ms * 1.01
    assert said.joint.estimate_ms < sum(estimates) or len(estimates) == 1
    assert said.joint.estimate_ms == pytest.approx(8.0, rel=0.35)


def test_ranks_that_are_missing_are_named(tmp_path: Path) -> None:
    traces = simulate_job(ranks=4, steps=6, late=RankDelay(2, 8_000_000, "data")).traces
    del traces[1]
    said = advise(read(tmp_path, traces))
    [late] = [finding for finding in said.findings if finding.rule == "slow_rank"]
    assert late.title.startswith("`rank 2` makes the 2 others wait")
    [note] = [note for note in said.health.notes if note.check == "ranks"]
    assert "without rank 1, of which there is no trace" in note.text


def test_rounds_that_a_rank_did_not_record_do_not_make_it_cheaper(tmp_path: Path) -> None:
    traces = simulate_job(ranks=2, steps=6, late=RankDelay(1, 8_000_000, "host")).traces
    whole = advise(read(tmp_path, traces))
    kept = json.loads(traces[1])
    last = max(e["ts"] for e in kept["traceEvents"] if "nccl" in e.get("name", "").lower())
    kept["traceEvents"] = [e for e in kept["traceEvents"] if e.get("ts", 0) < last - 2000]
    less = advise(read(tmp_path, {**traces, 1: json.dumps(kept).encode()}))
    of_whole, of_less = (
        next(found.saving.estimate_ms for found in said.findings if found.rule == "slow_rank")
        for said in (whole, less)
    )
    assert of_whole == pytest.approx(8.0, rel=0.1)
    assert of_less == pytest.approx(of_whole, rel=0.02)
