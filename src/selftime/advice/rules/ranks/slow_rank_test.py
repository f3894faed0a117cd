"""Tests the rule `slow_rank` on simulated jobs whose true delay and saving are known."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.ingest.load import load
from selftime.testing import sketch, sketch_job
from selftime.testing.simulated_jobs import DelayCause, RankDelay, simulate_job
from selftime.trace import Job

LATE_MS = 8.0


def write_and_load(folder: Path, traces_by_rank: dict[int, bytes]) -> Job:
    for rank, text in traces_by_rank.items():
        (folder / f"rank{rank}.json").write_bytes(text)
    job = load(folder, cache=False)
    assert isinstance(job, Job)
    return job


def mean_step_ms(job: Job) -> float:
    """Returns the mean time between the ends of successive steps of rank 0, in ms."""
    done = next(iter(job)).view("steps").select("start", "time")
    ends = (done["start"] + done["time"]).to_list()
    return float(ends[-1] - ends[0]) / (len(ends) - 1) / 1e6


@pytest.mark.parametrize("cause", ["data", "compute", "clocks", "gc", "host"])
@pytest.mark.sweep(2)
def test_the_saving_is_the_difference_to_a_job_without_the_delay(
    rule: Rule, cause: DelayCause, tmp_path: Path
) -> None:
    (tmp_path / "late").mkdir()
    (tmp_path / "good").mkdir()
    late = RankDelay(2, int(LATE_MS * 1e6), cause)
    job = write_and_load(tmp_path / "late", simulate_job(ranks=4, steps=6, late=late).traces)
    good = write_and_load(tmp_path / "good", simulate_job(ranks=4, steps=6).traces)
    mine = next(trace for trace in job if trace.source.endswith("rank2.json"))
    [finding] = rule(mine, Ranks.of(job))
    assert isinstance(finding, Finding)
    assert finding.title.startswith("`rank 2` makes the 3 others wait")
    assert finding.saving.estimate_ms == pytest.approx(
        mean_step_ms(job) - mean_step_ms(good), rel=0.1
    )
    assert finding.changes


SLEEPING_RANK = """
    column = 1 ms
    rank 0
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    python 1 | mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
    call 1   |  knwwwwwwwww knwwwwwwwww knwwwwwwwww knwwwwwwwww
    gpu 7    |   kkkk        kkkk        kkkk        kkkk
    gpu 20   |       nnnnnn      nnnnnn      nnnnnn      nnnnnn
    rank 1
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    python 1 | mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
    python 1 | pppp        pppp        pppp        pppp
    call 1   |      knwwwww     knwwwww     knwwwww     knwwwww
    gpu 7    |       kkkk        kkkk        kkkk        kkkk
    gpu 20   |           nn          nn          nn          nn
    {run}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    m = train.py(3): main
    p = train.py(20): poll
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize
"""


@pytest.mark.parametrize(
    ("samples", "line", "how"),
    [
        ((), 20, "definition"),
        (
            ("run | 12 samples at train.py:23 poll", "run | 3 samples at train.py:24 poll"),
            23,
            "stack",
        ),
        (("run | 5 samples at train.py:23 poll",), 20, "definition"),
        (("run | 12 samples at train.py:9 main",), 20, "definition"),
    ],
)
def test_samples_tell_the_line_at_which_the_late_rank_sleeps(
    rule: Rule, samples: tuple[str, ...], line: int, how: str
) -> None:
    run = "\n    ".join(("run | 20 training 12 ms", *samples))
    job = sketch_job(SLEEPING_RANK.format(run=run))
    assert isinstance(job, Job)
    mine = next(trace for trace in job if trace.run.samples.height or not samples)
    [finding] = rule(mine, Ranks.of(job))
    assert isinstance(finding, Finding)
    assert (finding.where.function, finding.where.line, finding.where.how) == ("poll", line, how)


def test_without_a_late_rank_nothing_is_reported(rule: Rule, tmp_path: Path) -> None:
    job = write_and_load(tmp_path, simulate_job(ranks=4, steps=6).traces)
    [checked] = rule(next(iter(job)), Ranks.of(job))
    assert isinstance(checked, Checked)
    assert checked.upper_ms is not None
    assert 0 < checked.upper_ms < 1


def test_with_one_of_two_ranks_the_outcome_is_unknown(rule: Rule, tmp_path: Path) -> None:
    job = write_and_load(tmp_path, {0: simulate_job(ranks=2, steps=4).traces[0]})
    [outcome] = rule(next(iter(job)))
    assert isinstance(outcome, Unknown)


def test_a_program_of_one_process_needs_no_other_traces(rule: Rule) -> None:
    [outcome] = rule(sketch("mark 1 | sstt\ns = ProfilerStep#1\nt = ProfilerStep#2"))
    assert isinstance(outcome, Checked)


def test_the_advice_for_another_rank_names_the_late_rank(rule: Rule, tmp_path: Path) -> None:
    job = write_and_load(
        tmp_path, simulate_job(ranks=4, steps=6, late=RankDelay(2, 8_000_000, "data")).traces
    )
    [outcome] = rule(next(iter(job)), Ranks.of(job))
    assert isinstance(outcome, Finding)
    assert not outcome.changes
    assert outcome.saving.estimate_ms == pytest.approx(LATE_MS, rel=0.1)


def test_a_rank_that_gets_more_in_all_to_alls_is_told_apart(rule: Rule) -> None:
    steps = "ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv"
    drawing = f"""
    column = 1 ms
    rank 0
    mark 1 | {steps}
    call 1 | kbwwwwwwwww kbwwwwwwwww kbwwwwwwwww kbwwwwwwwww
    gpu 7  |  kk          kk          kk          kk
    gpu 20 |    bbbbbbbb    bbbbbbbb    bbbbbbbb    bbbbbbbb
    rank 1
    mark 1 | {steps}
    call 1 | kawwwwwwwww kawwwwwwwww kawwwwwwwww kawwwwwwwww
    gpu 7  |  kkkkkkkk    kkkkkkkk    kkkkkkkk    kkkkkkkk
    gpu 20 |          aa          aa          aa          aa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    k = void gemm<float>()
    a = ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>); collective = all_to_allv; \
dtype = Float; in_elements = 3000; out_elements = 3000
    b = ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>); collective = all_to_allv; \
dtype = Float; in_elements = 1000; out_elements = 1000
    w = cudaDeviceSynchronize
    """
    job = sketch_job(drawing)
    assert isinstance(job, Job)
    [finding] = rule(job.traces[sorted(job.traces)[1]], Ranks.of(job))
    assert isinstance(finding, Finding)
    assert finding.title == "`rank 1` makes the other one wait: all-to-alls bring it more data"
    told = {one.metric: one.value for one in finding.evidence}
    assert told["data in its all-to-alls, as a ratio to the other ranks"] == 3.0


def test_where_waits_are_not_recorded_the_saving_is_a_bound(rule: Rule, tmp_path: Path) -> None:
    late = RankDelay(1, int(LATE_MS * 1e6), "host")
    job = write_and_load(tmp_path, simulate_job(ranks=2, steps=6, late=late).traces)
    known = Ranks.of(job)
    summaries = {
        path: replace(
            summary,
            arrivals=summary.arrivals.with_columns(
                pl.lit(None, summary.arrivals.schema["before"]).alias("before")
            ),
        )
        for path, summary in known.summaries.items()
    }
    found = next(iter(rule(next(iter(job)), Ranks(summaries, known.members))))
    assert isinstance(found, Finding)
    assert "`rank 1` makes the other one wait" in found.title
    assert found.saving.method == "none"
    assert found.saving.upper_ms == pytest.approx(LATE_MS, rel=0.2)
