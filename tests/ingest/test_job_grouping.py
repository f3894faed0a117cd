"""Which traces of a folder may be of one job: by name and first bytes alone."""

import json
import os
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from selftime.cli import app
from selftime.errors import UnrelatedTraces
from selftime.ingest.job_grouping import are_unrelated, separate_jobs
from selftime.ingest.load import load
from selftime.ingest.text.trace_start import TraceStart
from selftime.ingest.trace_listing import ListedTrace, listed_trace
from selftime.scale import survey
from selftime.trace import Job, Trace

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


def write(path: Path, rank: int | None = None, *, device: str = "", world_size: int = 2) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    event = {"ph": "X", "cat": "cpu_op", "name": path.name, "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    header = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world_size}}
    devices = {"deviceProperties": [{"id": 0, "name": device}]} if device else {}
    path.write_text(json.dumps({"schemaVersion": 1, **header, **devices, "traceEvents": [event]}))


def test_a_folder_of_unrelated_traces_is_not_read_as_one_job(tmp_path: Path) -> None:
    write(tmp_path / "vit.json", device="H100")
    write(tmp_path / "bert.json", device="A100")
    (tmp_path / "settings.json").write_text("{}")
    told = "holds 2 traces of 2 jobs .*`bert.json`, `vit.json`; name one of them, or .* a pattern"
    with pytest.raises(UnrelatedTraces, match=told):
        load(tmp_path)
    with pytest.raises(UnrelatedTraces, match=told):
        survey(tmp_path)
    asked = load(tmp_path / "*t.json")
    assert isinstance(asked, Job)
    assert len(asked.traces) == 2, "a pattern is read as it is"
    assert isinstance(load(tmp_path / "vit.json"), Trace)


def test_traces_of_jobs_of_different_sizes_are_not_read_as_one_job(tmp_path: Path) -> None:
    write(tmp_path / "a.json", rank=0, device="H100")
    write(tmp_path / "b.json", rank=1, device="H100", world_size=4)
    with pytest.raises(UnrelatedTraces, match="2 traces of 2 jobs"):
        load(tmp_path)


def test_the_command_reads_the_newest_of_them_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / "vit.json", rank=0, device="H100")
    write(tmp_path / "bert.json", rank=0, device="A100")
    os.utime(tmp_path / "bert.json", (1, 1))
    done = CliRunner().invoke(app, ["view", "operators", str(tmp_path)])
    assert done.exit_code == 0
    assert "holds 2 recordings; the newest, `vit.json`, is read" in done.stderr
    assert "Note" not in done.stderr, "what ranks of one job would have wrong is not told"
    done = CliRunner().invoke(app, ["view", "ranks", str(tmp_path)])
    assert (done.exit_code, "2 jobs that do not belong together" in done.stderr) == (2, True)


def test_names_alone_are_no_reason_to_refuse(tmp_path: Path) -> None:
    write(tmp_path / "vit.json")
    write(tmp_path / "bert.json")
    job = load(tmp_path)
    assert isinstance(job, Job)
    assert [member.rank for member in job.members.values()] == [None, None]


def test_ranks_and_runs_and_copies_are_read(tmp_path: Path) -> None:
    for run in ("a", "b"):
        for rank in range(2):
            write(tmp_path / run / f"{run}-{rank}.json", rank)
    shutil.copy(tmp_path / "a" / "a-0.json", tmp_path / "a" / "again.json")
    job = load(tmp_path)
    assert isinstance(job, Job)
    assert len(job.traces) == 4
