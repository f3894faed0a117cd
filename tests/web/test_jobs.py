"""The job of a trace: the same answers for all of its ranks, read one by one, and kept."""

import json
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any
from weakref import ref

import msgspec
import numpy as np
import polars as pl
import pytest
from werkzeug.test import Client

import selftime
from selftime.advice import advise
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.errors import ReadingStopped
from selftime.reports.advice.account_sentence import job_sentence
from selftime.reports.page_data.jobs import summarize_trace
from selftime.scale import local
from selftime.testing.simulated_jobs import RankDelay, SimulatedJob, simulate_job
from selftime.trace import Trace
from selftime.units import time_text
from selftime.web import PageApp, TracesAtPaths, jobs, sources
from selftime.web.answers import PageDataAnswers
from selftime.web.client_presence import is_client_gone
from selftime.web.jobs import decode_trace_summary, encode_trace_summary
from selftime.web.sources import read_trace

RANKS = 4
ACROSS = ("ranks", "stragglers", "collectives", "arrivals")
NEAR = 2_000
"""ns: a trace's times are written to a thousandth of a microsecond, and clocks drift."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def ran() -> SimulatedJob:
    return simulate_job(ranks=RANKS, steps=5, late=RankDelay(2, 8_000_000, "data"))


@pytest.fixture
def folder(tmp_path: Path, ran: SimulatedJob) -> Path:
    """A folder with a folder for each rank."""
    for rank, text in ran.traces.items():
        path = tmp_path / "runs" / f"rank{rank}" / "trace.pt.trace.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(text)
    return tmp_path / "runs"


class Reading:
    """Reads traces, and counts how many, and how many of them are held at once."""

    def __init__(self) -> None:
        self.opened = 0
        self.most_held = 0
        self._held: list[ref[Trace]] = []

    def __call__(self, place: str, **progress: Any) -> Trace:
        self._held = [one for one in self._held if one() is not None]
        self.most_held = max(self.most_held, len(self._held) + 1)
        self.opened += 1
        found = read_trace(place, **progress)
        self._held.append(ref(found))
        return found


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    reading = Reading()
    monkeypatch.setattr(sources, "read_trace", reading)
    monkeypatch.setattr(jobs, "read_trace", reading)
    return reading


def told(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The job as the page is told of it, and the ids of all traces."""
    client = Client(PageApp(TracesAtPaths([str(folder)])))
    listed: Any = client.get("/api/traces").json
    ids = [one["id"] for one in listed["traces"]]
    answer: Any = client.get("/api/job", query_string={".trace": ids[0]}).json
    return answer, ids


@pytest.mark.parametrize("view", ACROSS)
@pytest.mark.sweep(1)
def test_a_view_across_ranks_is_of_the_whole_job_whichever_trace_is_named(
    view: str, folder: Path
) -> None:
    files = TracesAtPaths([str(folder)])
    server = PageDataAnswers(files)
    answers = {server.view_page_json(view, {".trace": one.id}) for one in files.listed_traces()}
    assert len(answers) == 1
    job = selftime.load(folder)
    assert isinstance(job, selftime.Job)
    assert json.loads(answers.pop())["all"] == job.view(view).height
    rows = server.view_csv(view, {".trace": files.listed_traces()[0].id}).decode().splitlines()
    assert len(rows) == job.view(view).height + 1


def test_small_ranks_are_read_one_by_one_and_not_again(folder: Path, reading: Reading) -> None:
    files = TracesAtPaths([str(folder)])
    words = {".trace": files.listed_traces()[1].id}
    first = PageDataAnswers(files).view_page_json("ranks", words)
    assert reading.opened == RANKS
    assert reading.most_held == 2  # the chosen one stays at hand
    assert PageDataAnswers(TracesAtPaths([str(folder)])).view_page_json("ranks", words) == first
    assert reading.opened == RANKS


def test_large_ones_are_read_by_other_processes(
    folder: Path, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> tuple[bytes, list[dict[str, str]]]:
        server = PageDataAnswers(TracesAtPaths([str(folder)]))
        words = {".trace": server.sources.listed_traces()[0].id}
        return server.view_page_json("ranks", words), json.loads(server.job_json(words))["refused"]

    (folder / "rank3" / "trace.pt.trace.json").write_text('{"traceEvents": []}')
    here = asked()
    monkeypatch.setenv("SELFTIME_CACHE", str(folder / "another"))
    monkeypatch.setenv("SELFTIME_WORKERS", "2")
    monkeypatch.setattr(local, "_MIN_TOTAL_FILE_BYTES_FOR_PROCESSES", 0)
    before = reading.opened
    assert asked() == here
    assert reading.opened == before + 1  # the one that is shown


def test_a_job_tells_its_ranks_the_missing_and_what_was_left_out(folder: Path) -> None:
    (folder / "rank1" / "trace.pt.trace.json").write_text('{"traceEvents": []}')
    job, ids = told(folder)
    assert [one["label"] for one in job["ranks"]] == ["rank 0", "rank 2", "rank 3"]
    assert [one["traces"][0]["trace"] for one in job["ranks"]] == [ids[0], *ids[2:]]
    assert (job["size"], job["missing"]) == (RANKS, [1])
    assert job["notes"] == [f"rank 1 of {RANKS} is missing"]
    [refused] = job["refused"]
    assert refused["name"].endswith("rank1/trace.pt.trace.json")
    assert "it holds no events" in refused["why"]
    assert job["facts"][0] == f"3 of {RANKS} ranks"
    assert job["facts"][-1] == "1 process group"
    assert job["single_rank_note"] is None
    [group] = job["groups"]
    assert (group["axis"], group["ranks"]) == ("all", list(range(RANKS)))


def test_a_job_tells_what_a_step_of_each_rank_is_spent_on(folder: Path) -> None:
    answer, _ = told(folder)
    found = answer["account"]
    said = advise(selftime.load(folder), rules={}).job
    assert said is not None
    assert said.late is not None
    assert job_sentence(said).endswith(f"{found['spent']}. {found['late']['text']}")
    assert found["late"]["label"] == "rank 2"
    assert [rank["label"] for rank in found["ranks"]] == [f"rank {rank}" for rank in range(RANKS)]
    for rank, entry in enumerate(found["ranks"]):
        trace = selftime.load(folder / f"rank{rank}" / "trace.pt.trace.json")
        spent = dict(
            trace.view("account")
            .group_by(pl.col("class").cast(pl.String))
            .agg(pl.col("per_step").sum())
            .iter_rows()
        )
        times = dict(zip([part["class"] for part in found["parts"]], entry["times"], strict=True))
        small = times.pop("small")
        for name, time in times.items():
            assert time == pytest.approx(spent.pop(name), abs=2)
        assert small == pytest.approx(sum(spent.values()), abs=2)
    assert found["parts"][-1]["label"] == "2 smaller"


def test_the_answer_on_a_rank_is_that_of_the_command_line(folder: Path) -> None:
    """With all ranks: the rank that is late, and what makes it late."""
    files = TracesAtPaths([str(folder)])
    answers = PageDataAnswers(files)
    job = selftime.load(folder)
    assert isinstance(job, selftime.Job)
    ranks = Ranks.of(job)
    for listed, trace in zip(files.listed_traces(), job, strict=True):
        found = json.loads(answers.advice_json({".trace": listed.id}))
        said = advise(trace, ranks=ranks)
        assert said.job is not None
        assert found["said"]["job"] == job_sentence(said.job)
        rules = [finding.rule for finding in said.findings]
        assert "slow_rank" in rules
        assert [finding["rule"] for finding in found["findings"]] == rules


def test_a_rank_that_comes_later_is_in_the_answer(folder: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    (folder / "rank2").rename(away)
    files = TracesAtPaths([str(folder)])
    answers = PageDataAnswers(files)
    words = {".trace": files.listed_traces()[0].id}
    assert "the mean of 3 ranks" in json.loads(answers.advice_json(words))["said"]["job"]
    away.rename(folder / "rank2")
    again = json.loads(PageDataAnswers(TracesAtPaths([str(folder)])).advice_json(words))
    assert "the mean of 4 ranks" in again["said"]["job"]


def test_one_rank_has_no_account_of_a_job(write: Callable[..., Path]) -> None:
    answer, _ = told(write("one.json").parent)
    assert answer["account"] is None
    files = TracesAtPaths([str(write("one.json"))])
    words = {".trace": files.listed_traces()[0].id}
    assert json.loads(PageDataAnswers(files).advice_json(words))["said"]["job"] is None


def test_the_ends_of_a_collective_are_one_instant_by_the_common_clock(folder: Path) -> None:
    job, _ = told(folder)
    ends = []
    for rank in job["ranks"]:
        trace = selftime.load(folder / f"rank{rank['rank']}" / "trace.pt.trace.json")
        assert isinstance(trace, Trace)
        own = summarize_trace(trace).rank_summary.collectives["end"].to_numpy()
        [clock] = rank["traces"]
        assert trace.origin is not None
        assert clock["origin"] == trace.origin // 1000
        ends.append(own * (1 + clock["drift"]) + clock["shift"])
    assert np.ptp(np.array(ends), axis=0).max() < NEAR
    assert job["residual"] < NEAR
    agreement = time_text(max(ceil(job["residual"]), 1))
    assert f"clocks agree within {agreement}" in job["facts"]


def test_recordings_of_single_processes_are_no_job(
    write: Callable[..., Path], reading: Reading
) -> None:
    files = TracesAtPaths([str(write("one.json").parent), str(write("two.json"))])
    server = PageDataAnswers(files)
    for listed in files.listed_traces():
        job = json.loads(server.job_json({".trace": listed.id}))
        assert job["facts"][0] == "1 rank"
        assert "With the traces of the other ranks in the same folder" in job["single_rank_note"]
        [rank] = job["ranks"]
        assert [one["trace"] for one in rank["traces"]] == [listed.id]
    assert reading.opened == 2


def test_of_two_recordings_of_a_rank_each_is_shown(folder: Path, ran: SimulatedJob) -> None:
    """The later one counts as the rank; the other one is viewed alone."""
    other = folder / "rank0" / "before.pt.trace.json"
    earlier = json.loads(ran.traces[0])
    earlier["baseTimeNanoseconds"] -= 10**15
    other.write_text(json.dumps(earlier))
    files = TracesAtPaths([str(folder)])
    server = PageDataAnswers(files)
    traces = files.listed_traces()
    assert len(traces) == len(ran.traces) + 1
    for listed in traces:
        job = json.loads(server.job_json({".trace": listed.id}))
        shown = {one["trace"] for rank in job["ranks"] for one in rank["traces"]}
        assert listed.id in shown


def test_an_unknown_trace_is_told_in_a_sentence(folder: Path) -> None:
    client = Client(PageApp(TracesAtPaths([str(folder)])))
    answer = client.get("/api/job", query_string={".trace": "none"})
    assert answer.status_code == 400
    assert answer.json == {"error": "there is no trace `none` here; load the page again"}


def test_what_a_trace_tells_survives_being_kept(folder: Path) -> None:
    trace = selftime.load(folder / "rank0" / "trace.pt.trace.json")
    assert isinstance(trace, Trace)
    known = summarize_trace(trace)
    back = decode_trace_summary(encode_trace_summary(known))
    assert back is not None
    assert back.identity == known.identity
    assert back.rank_summary.collectives.equals(known.rank_summary.collectives)
    assert back.rank_summary.steps.equals(known.rank_summary.steps)
    assert (back.rank_summary.origin, back.rank_summary.device) == (
        known.rank_summary.origin,
        known.rank_summary.device,
    )
    identity, of_fields = msgspec.msgpack.decode(encode_trace_summary(known))
    del of_fields["paths"]  # as of a selftime before they were kept
    older = msgspec.msgpack.encode((identity, of_fields))
    for damaged in (b"", b"\x00", encode_trace_summary(known)[:-20], older):
        assert decode_trace_summary(damaged) is None


def test_how_far_the_reading_of_the_ranks_is_is_told_and_it_ends_with_the_client(
    folder: Path,
) -> None:
    answers = PageDataAnswers(TracesAtPaths([str(folder)]))
    [first, *_] = answers.sources.listed_traces()
    told: list[dict[str, Any]] = []

    def is_gone() -> bool:
        progress = json.loads(answers.progress_json({".trace": first.id}))["progress"]
        told.extend([] if progress is None else [progress])
        return any(one["stage"] == f"Reading rank 3 of {RANKS}" for one in told)

    is_client_gone.set(is_gone)
    try:
        with pytest.raises(ReadingStopped):
            answers.job_json({".trace": first.id})
    finally:
        is_client_gone.set(None)
    of_ranks = [one for one in told if "rank" in one["stage"]]
    assert {one["stage"] for one in of_ranks} == {f"Reading rank {n} of {RANKS}" for n in (2, 3)}
    assert of_ranks[-1]["done"] <= of_ranks[-1]["total"]
    assert json.loads(answers.progress_json({".trace": first.id})) == {"progress": None}
    answers.job_json({".trace": first.id})  # who asks again is answered
