"""The page's questions for the slices of a number, and for the numbers that a slice is part of."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.mcp.recorded import LOADER, written
from werkzeug.test import Client

import selftime
from selftime.intervals import union
from selftime.reports.page_data.number_slices import (
    DescribedNumber,
    described_numbers,
    number_slices_json,
)
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.web import PageApp, TracesAtPaths, advice_answers


class Page:
    """A page at a server of one trace."""

    def __init__(self, *files: Path) -> None:
        app = PageApp(TracesAtPaths([str(file) for file in files]))
        app.answers.advice._store_after_s = 0.0
        self.client = Client(app)
        self.trace = self.client.get("/api/traces").json["traces"][0]["id"]  # type: ignore[index]  # an object

    def ask(self, path: str, **words: Any) -> Any:
        return self.client.get(f"/api/{path}", query_string={".trace": self.trace, **words}).json


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))
    return written(tmp_path / "trace.json")


@pytest.fixture
def advised(monkeypatch: pytest.MonkeyPatch) -> list[Trace]:
    """The traces whose advice is computed."""
    seen: list[Trace] = []

    def counted(trace: Trace, **more: Any) -> Any:
        seen.append(trace)
        return selftime.advise(trace, **more)

    monkeypatch.setattr(advice_answers, "advise", counted)
    return seen


def ids(file: Path, name: str) -> list[int]:
    trace = selftime.load(str(file))
    assert isinstance(trace, Trace)
    return trace.slices.filter(trace.slices["name"].cast(str) == name)["id"].to_list()


def test_a_slice_never_makes_the_advice_unless_it_is_asked_for(
    file: Path, advised: list[Trace]
) -> None:
    page, slice_id = Page(file), ids(file, LOADER)[1]
    unknown = {"known": False, "numbers": []}
    assert page.ask("numbers", slice=slice_id) == unknown
    assert page.ask("numbers") == unknown
    assert advised == []
    found = page.ask("numbers", slice=slice_id, compute="true")
    assert len(advised) == 1
    (finding, row) = found["numbers"]
    assert (finding["relation"], row["relation"]) == ("own", "own")
    assert finding["answer"] == {"open": finding["of"].removeprefix("finding:")}
    assert finding["detail"].startswith("saves")
    assert row["kind"] == "row"
    assert page.ask("numbers", slice=slice_id) == found
    assert len(advised) == 1


def test_what_was_computed_once_is_known_to_the_next_server(
    file: Path, advised: list[Trace]
) -> None:
    first = Page(file)
    first.ask("advice")
    told = first.ask("numbers")
    assert told["known"]
    later = Page(file)
    assert later.ask("numbers") == told
    one = told["numbers"][0]["of"]
    assert later.ask("number_slices", of=one) == first.ask("number_slices", of=one)
    assert len(advised) == 1


def test_links_of_the_advice_lead_to_as_many_slices_as_they_say(file: Path) -> None:
    page = Page(file)
    said = page.ask("advice")["said"]
    links = [row["slices"] for row in said["account"]["rows"]]
    for texts in said["findings"]:
        slices = texts["slices"]
        links += [slices["changed"], slices["count"], *slices["evidence"]]
    shown = [link for link in links if link is not None]
    assert shown
    for link in shown:
        found = page.ask("number_slices", of=link["of"])
        assert found["text"] == link["text"]
        assert found["slices"]["rows"] == found["slice_count"]
        assert found["stretches"]["rows"] == found["stretch_count"]
        assert found["slice_count"] + found["stretch_count"] > 0


def test_a_row_of_the_account_is_opened_by_its_place(file: Path) -> None:
    page = Page(file)
    rows = page.ask("advice")["said"]["account"]["rows"]
    linked = [(at, row["slices"]) for at, row in enumerate(rows) if row["slices"] is not None]
    assert len(linked) > 1
    for at, link in linked:
        found = page.ask("number_slices", of=link["of"])
        assert found["answer"] == {"why": str(at + 1), "rows": "all"}


def test_slices_of_a_number_lie_where_the_timeline_draws_them(file: Path) -> None:
    page = Page(file)
    texts = page.ask("advice")["said"]["findings"][0]
    found = page.ask("number_slices", of=texts["slices"]["changed"]["of"])
    columns = found["slices"]["columns"]
    assert columns["id"]["values"] == ids(file, LOADER)
    for at, id_ in enumerate(columns["id"]["values"]):
        facts = page.ask("view/slice", id=id_)["columns"]
        for name in ("track", "row", "start", "duration"):
            assert columns[name]["values"][at] == facts[name]["values"][0]


def test_other_slices_are_related_through_those_around_and_within_them(file: Path) -> None:
    page = Page(file)
    page.ask("advice")

    def told(name: str) -> dict[str, tuple[str, int]]:
        found = page.ask("numbers", slice=ids(file, name)[5])["numbers"]
        return {one["of"].partition("-")[0]: (one["relation"], one["count"]) for one in found}

    # the wait within it is the finding's, its own time is in the account
    assert told("aten::item")["finding:scalar_read"] == ("contains", 1)
    assert told("aten::item")["account:compute"] == ("own", 1)
    assert told("cudaStreamSynchronize")["finding:scalar_read"] == ("own", 1)
    assert told("aten::mm")["account:launch"] == ("own", 1)
    assert told("cudaLaunchKernel")["account:launch"] == ("inside", 1)
    assert told("void aten::mm_kernel<float>()")["account:compute"] == ("own", 1)


@pytest.mark.parametrize("of", ["", "finding:none", "account:x", "x" * 200])
def test_a_number_that_is_not_there_is_told_in_a_sentence(file: Path, of: str) -> None:
    answer = Page(file).ask("number_slices", of=of)
    assert list(answer) == ["error"]
    assert "panel Answer" in answer["error"]


def test_a_slice_that_is_not_there_is_refused(file: Path) -> None:
    page = Page(file)
    page.ask("advice")
    assert "is no slice" in page.ask("numbers", slice=10**6)["error"]
    assert page.ask("numbers", slice="x")["error"].startswith("`slice` is `x`")


def test_of_many_slices_the_longest_are_sent(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(file)
    of = page.ask("advice")["said"]["findings"][0]["slices"]["changed"]["of"]
    every = page.ask("number_slices", of=of)["slices"]["columns"]
    monkeypatch.setattr(
        "selftime.reports.page_data.number_slices.number_slices_json.__defaults__", (2,)
    )
    few = page.ask("number_slices", of=of)
    assert few["slice_count"] == len(every["id"]["values"])
    longest = sorted(every["duration"]["values"])[-2:]
    assert sorted(few["slices"]["columns"]["duration"]["values"]) == longest
    starts = few["slices"]["columns"]["start"]["values"]
    assert starts == sorted(starts)


def test_of_many_stretches_the_longest_are_sent_in_order_of_time() -> None:
    stretches = union([0, 100, 300], [50, 110, 400])
    number = DescribedNumber("account:x", "row", "", "", "", {}, False, np.array([0]), stretches)
    told = json.loads(number_slices_json(sketch("cpu 1 | aa b"), number, 2))
    assert told["text"] == "1 slice and 3 stretches of time"
    assert (told["slice_count"], told["stretch_count"], told["stretch_time"]) == (1, 3, 160)
    columns = told["stretches"]["columns"]
    assert [columns[name]["values"] for name in ("start", "duration")] == [[0, 300], [50, 100]]


def test_stored_numbers_are_the_same_and_damaged_ones_are_none() -> None:
    trace = sketch("cpu 1 | aa b")
    numbers = described_numbers(selftime.advise(trace), None)
    assert numbers
    encoded = advice_answers.encode_numbers(numbers)
    told = advice_answers.decode_numbers(encoded)
    assert told is not None
    assert [one.to_dict() for one in told] == [one.to_dict() for one in numbers]
    assert [one.slices.tolist() for one in told] == [one.slices.tolist() for one in numbers]
    assert advice_answers.decode_numbers(b"x") is None
    assert advice_answers.decode_numbers(encoded[:-3]) is None


def test_of_a_job_nothing_is_read_that_was_not_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, advised: list[Trace]
) -> None:
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))
    files = [written(tmp_path / "job" / f"rank{rank}.json") for rank in range(2)]
    page = Page(*files)
    assert page.ask("numbers", slice=3) == {"known": False, "numbers": []}
    assert page.ask("progress") == {"progress": None}
    page.ask("advice")
    assert page.ask("numbers", slice=3)["known"]
    assert len(advised) == 1
