import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from selftime import load
from selftime.progress import ProgressCallback
from selftime.reports.page_data.table_queries import prepare_table
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.web import TracesAtPaths, caches
from selftime.web.answers import (
    PageDataAnswers,
    _decode_view_table,
    _encode_view_table,
    _ViewTable,
)
from selftime.web.caches import AnswerStore

BODY = b"the answer"


class Counted(TracesAtPaths):
    """Files that count how often one is opened."""

    opened = 0

    def open(self, trace_id: str, *, progress: ProgressCallback | None = None) -> Trace:
        self.opened += 1
        return super().open(trace_id, progress=progress)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def answers(path: Path) -> tuple[PageDataAnswers, Counted, dict[str, str]]:
    """A server that has answered nothing yet, its files, and the words for its only trace."""
    files = Counted([str(path)])
    return PageDataAnswers(files, store_after_s=0), files, {".trace": files.listed_traces()[0].id}


def test_an_answer_is_found_by_its_question_only() -> None:
    AnswerStore().store(BODY, "advice", "mark")
    assert AnswerStore().find("advice", "mark") == BODY
    assert AnswerStore().find("advice", "other") is None
    assert AnswerStore().find("advicemark") is None


def test_a_damaged_answer_is_none(cache: Path) -> None:
    AnswerStore().store(BODY, "a")
    [file] = (cache / "answers-1").iterdir()
    content = file.read_bytes()
    for damaged in (b"", content[:-1], content[:40], b"x" * len(content), content + b"x"):
        file.write_bytes(damaged)
        assert AnswerStore().find("a") is None
    file.write_bytes(content)
    assert AnswerStore().find("a") == BODY


def test_an_answer_is_as_true_as_the_files_it_was_made_from(tmp_path: Path) -> None:
    there, gone = tmp_path / "a.py", tmp_path / "b.py"
    there.write_text("x = 1")
    AnswerStore().store(BODY, "a", source_files=[there, gone])
    assert AnswerStore().find("a") == BODY
    there.write_text("x = 12")
    assert AnswerStore().find("a") is None
    AnswerStore().store(BODY, "a", source_files=[there, gone])
    gone.write_text("")
    assert AnswerStore().find("a") is None


def test_other_code_gives_other_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    AnswerStore().store(BODY, "a")
    monkeypatch.setattr(caches, "_hash_of_code_and_rules", lambda: "another version")
    assert AnswerStore().find("a") is None


def test_the_longest_unused_go_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "_MAX_TOTAL_BYTES_OF_STORED_ANSWERS", 3000)
    for number, name in enumerate("abc"):
        AnswerStore().store(bytes(900), name)
        [newest] = [p for p in (cache / "answers-1").iterdir() if p.stat().st_mtime > 1000]
        os.utime(newest, (number, number))
    assert AnswerStore().find("a") is not None  # which makes it the last used
    AnswerStore().store(bytes(900), "d")
    assert AnswerStore().find("b") is None
    assert [AnswerStore().find(name) is not None for name in "acd"] == [True, True, True]


def test_an_answer_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "_MAX_BYTES_OF_ONE_STORED_ANSWER", 9)
    AnswerStore().store(BODY, "a")
    assert AnswerStore().find("a") is None


def test_a_folder_that_cannot_be_written_is_left_alone(cache: Path) -> None:
    cache.write_text("a file")
    AnswerStore().store(BODY, "a")
    assert AnswerStore().find("a") is None


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.sweep(8)
def test_a_view_is_the_same_without_the_trace(view: Any, write: Callable[..., Path]) -> None:
    path = write()
    first, files, words = answers(path)
    told = first.view_page_json(view.name, words)
    assert files.opened == 1
    again, files, words = answers(path)
    assert again.view_page_json(view.name, words) == told
    table = again.view_csv(view.name, words)
    assert files.opened == 0
    trace = load(path)
    assert isinstance(trace, Trace)
    assert table == first.view_csv(view.name, words)
    assert json.loads(told)["all"] == trace.view(view.name).height


def test_advice_is_the_same_without_the_trace(write: Callable[..., Path]) -> None:
    path = write()
    first, _, words = answers(path)
    told = first.advice_json(words)
    again, files, words = answers(path)
    assert again.advice_json(words) == told
    assert files.opened == 0


def test_a_trace_that_was_written_anew_is_read_anew(write: Callable[..., Path]) -> None:
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]
    server, _, words = answers(write(events=events))
    assert json.loads(server.view_page_json("operators", words))["all"] == 1
    write(events=[*events, {**events[0], "name": "b", "ts": 5}])
    assert json.loads(server.view_page_json("operators", words))["all"] == 2


def test_tables_kept_hold_all_that_a_table_holds(write: Callable[..., Path]) -> None:
    """Texts that are numbers inside, and numbers that are none, survive."""
    trace = load(write())
    assert isinstance(trace, Trace)
    view = VIEWS["operators"]
    table = view(trace).with_columns(cpu_time_std=pl.lit(float("nan")))
    body = _encode_view_table(
        _ViewTable(prepare_table(table, view.columns, sums=view.sums), ("a", "b"))
    )
    back = _decode_view_table(body, view)
    assert back is not None
    assert back.lacks == ("a", "b")
    assert_frame_equal(back.table.table, table)
    assert _decode_view_table(body, VIEWS["kernels"]) is None
    assert _decode_view_table(body[:-9], view) is None
