"""Which traces of a folder may be of one job: by name and first bytes alone."""

from collections import defaultdict

import pytest

from selftime.ingest.job_grouping import are_unrelated, separate_jobs
from selftime.ingest.text.trace_start import TraceStart
from selftime.ingest.trace_listing import ListedTrace, listed_trace

RANK_OF_TWO = [TraceStart("H100", 0, 2), TraceStart("H100", 1, 2)]


def jobs(names: list[str], starts: list[TraceStart] | None = None) -> list[list[str]]:
    """The names by job, of traces in one folder."""
    listed = [listed_trace(f"/runs/{name}", run_folder="runs") for name in names]
    by_id = {one.id: start for one, start in zip(listed, starts or (), strict=bool(starts))}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for one in separate_jobs(listed, by_id):
        found[one.job].append(one.name)
    return list(found.values())


@pytest.mark.parametrize(
    "names",
    [
        ["rank0.json", "rank1.json"],
        ["node-a_rank0.json", "node-b_rank1.json"],
        ["17-TP-0.trace.json.gz", "17-TP-1.trace.json.gz"],
        ["node_7.1.pt.trace.json", "other_9.2.pt.trace.json", "node_7.run.jsonl"],
    ],
)
def test_names_of_ranks_are_one_job(names: list[str]) -> None:
    assert jobs(names) == [names]


@pytest.mark.parametrize(
    "names", [["vit.json", "bert.json"], ["vit-rank1.json", "bert-rank1.json"]]
)
def test_other_names_are_jobs_of_their_own(names: list[str]) -> None:
    assert jobs(names) == [[name] for name in names]


def test_a_world_size_joins_whatever_the_names() -> None:
    assert jobs(["a.json", "b.json"], RANK_OF_TWO) == [["a.json", "b.json"]]


def test_a_damaged_trace_of_a_rank_is_of_its_job() -> None:
    names = ["rank0.json", "rank1.json"]
    assert jobs(names, [RANK_OF_TWO[0], TraceStart()]) == [names]


@pytest.mark.parametrize(
    "other",
    [TraceStart("H100", 1, 4), TraceStart("A100", 1, 2), TraceStart("H100", 0, 2)],
    ids=["world size", "device", "rank"],
)
def test_what_contradicts_is_no_job(other: TraceStart) -> None:
    assert jobs(["a.json", "b.json"], [RANK_OF_TWO[0], other]) == [["a.json"], ["b.json"]]


def test_a_folder_of_several_jobs_is_listed_first_but_not_a_pair_of_files() -> None:
    traces = [ListedTrace(job, job, "runs", job=job) for job in "abc"]
    named = [ListedTrace(job, job, job=job) for job in "abc"]
    assert are_unrelated(traces[:2])
    assert not are_unrelated(named[:2])
    assert are_unrelated(named)
    assert not are_unrelated([*traces[:1], ListedTrace("d", "d", "later", job="d")])
