"""A history keeps what commits took, and names the one at which a measure changed."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.compare.check.test_baseline_checks import MACHINE, run

from selftime.compare.check.history_changes import HistoryReport, history_report
from selftime.compare.check.history_files import Commit, History, HistoryEntry, keep_entries
from selftime.compare.check.limit_checks import RecordingCheck
from selftime.errors import SelftimeError, UsageError
from selftime.reports.check import as_json, as_markdown, as_text
from selftime.reports.check_page import as_html
from selftime.trace import Trace


def entry(
    day: int, *, ms: float = 10.0, operators: float = 100.0, commit: str = ""
) -> HistoryEntry:
    """The run of the commit of a day of 2026, of which months have 28 days."""
    date = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T12:00:00+00:00"
    commit = commit or f"{day:040x}"
    return HistoryEntry(date, Commit(commit, date, f"Change {day}"), run(operators, ms=ms))


def told(entries: Sequence[HistoryEntry], *, new: int = 1, times: bool = True) -> HistoryReport:
    """What a history tells once the last `new` entries are added."""
    history = History(()).with_entries(entries)
    return history_report("DIR", history, entries[-new:], least_change=0.05, judges_times=times)


def noisy(count: int, seed: int = 0) -> list[float]:
    return [
        10 * float(np.exp(0.03 * one)) for one in np.random.default_rng(seed).normal(size=count)
    ]


def changes(report: HistoryReport) -> list[tuple[str, int, bool]]:
    return [(one.measure, one.index, one.is_new) for _, one in report.changes]


def test_a_history_of_one_run_tells_no_change() -> None:
    report = told([entry(0)])
    assert [series.measure for series in report.series] == ["host_ms", "operators"]
    assert (report.entries, changes(report), report.has_new_regression) == (1, [], False)


def test_a_count_changes_at_the_commit_that_has_another_and_fails_once() -> None:
    flat = [entry(day) for day in range(5)]
    more = [*flat, entry(5, operators=101)]
    assert changes(told(more)) == [("operators", 5, True)]
    assert told(more, times=False).has_new_regression
    later = told([*more, entry(6, operators=101)])
    assert changes(later) == [("operators", 5, False)]
    assert not later.has_new_regression
    again = told([*more, entry(6, operators=102)])  # the next commit adds another one
    assert again.has_new_regression
    fewer = told([*flat, entry(5, operators=99)])
    assert (changes(fewer), fewer.has_new_regression) == ([("operators", 5, True)], False)


def test_a_count_that_varies_by_itself_is_no_series_of_changes() -> None:
    draw = np.random.default_rng(0)
    entries = [entry(day, operators=float(draw.integers(100, 104))) for day in range(30)]
    assert changes(told(entries)) == []


def test_the_commit_at_which_times_changed_is_named() -> None:
    entries = [entry(day, ms=ms * (1.3 if day >= 24 else 1)) for day, ms in enumerate(noisy(40))]
    report = told(entries)
    [(name, index, is_new)] = changes(report)
    assert (name, is_new) == ("host_ms", False)
    assert abs(index - 24) <= 1
    page = as_text(RecordingCheck("run.json", None, (), (), history=report))
    assert f"at {entries[index].commit.short_id} `Change {index}`" in " ".join(page.split())  # type: ignore[union-attr]  # each has one


def test_slower_times_fail_once_and_only_if_asked() -> None:
    """Of 24 flat runs and slower ones, one after the other: a failure at one of them."""
    entries = [entry(day, ms=ms * (1.3 if day >= 24 else 1)) for day, ms in enumerate(noisy(31))]
    failed = [end for end in range(25, 31) if told(entries[:end]).has_new_regression]
    assert len(failed) == 1
    assert failed[0] <= 28
    assert not told(entries[: failed[0]], times=False).has_new_regression


def test_times_of_other_machines_are_left_out_and_counts_are_not() -> None:
    entries = [entry(day, ms=ms) for day, ms in enumerate(noisy(12))]
    other = replace(MACHINE, processor="Other")
    slow = [entry(day, ms=30.0) for day in range(12, 16)]
    moved = [replace(one, run=replace(one.run, comparability=other)) for one in slow]
    report = told([*entries[:11], *moved, entries[11]])
    times, counts = report.series
    assert (len(times.points), len(counts.points)) == (12, 16)
    assert report.notes == ("left out of times: 4 runs on another machine than the newest",)


def test_times_of_runs_that_waited_for_cores_are_left_out() -> None:
    entries = [entry(day, ms=ms) for day, ms in enumerate(noisy(12))]
    waited = [replace(one, run=replace(one.run, core_wait=0.4)) for one in entries[3:9]]
    report = told([*entries[:3], *waited, *entries[9:]])
    assert [len(series.points) for series in report.series] == [6, 12]
    assert "6 runs while other programs had the cores" in report.notes[0]


def test_runs_of_a_commit_are_one_point_and_those_with_changes_their_own() -> None:
    first = [entry(0, ms=ms) for ms in (9.0, 10.0, 14.0)]
    dirty = replace(entry(0, ms=20.0), commit=replace(first[0].commit, has_changes=True))  # type: ignore[type-var]  # it has one
    points = told([*first, dirty]).series[0].points
    assert [(point.value, point.runs) for point in points] == [(10.0, 3), (20.0, 1)]


def test_a_folder_keeps_each_recording_once_and_in_the_order_of_commits(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "history"
    assert History.read(folder).entries == ()
    keep_entries(folder, [entry(3), entry(1)])
    keep_entries(folder, [entry(1), entry(2)])
    read = History.read(folder).entries
    assert [one.commit for one in read] == [entry(day).commit for day in (1, 2, 3)]
    assert read[0].run.numbers() == entry(1).run.numbers()
    assert len(list(folder.iterdir())) == 3


def test_writers_at_once_lose_nothing_and_leave_nothing_else(tmp_path: Path) -> None:
    def write(number: int) -> None:
        keep_entries(tmp_path, [entry(number % 20), entry(0)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(60)))
    assert len(History.read(tmp_path).entries) == 20
    assert len(list(tmp_path.iterdir())) == 20


def test_what_is_no_entry_is_left_out_and_told(tmp_path: Path) -> None:
    keep_entries(tmp_path, [entry(1)])
    [kept] = tmp_path.iterdir()
    (tmp_path / "torn.json").write_text(kept.read_text()[:200])
    (tmp_path / "other.json").write_text(kept.read_text().replace("history/1", "history/9"))
    (tmp_path / "dated.json").write_text(kept.read_text().replace("2026-01-02T", "yesterday "))
    (tmp_path / "README.md").write_text("The history of our program.")
    read = History.read(tmp_path)
    assert len(read.entries) == 1
    assert [reason.split("`")[1] for reason in read.left_out] == [
        "dated.json",
        "other.json",
        "torn.json",
    ]
    with pytest.raises(UsageError, match="--history"):
        History.read(kept)


def test_a_recording_without_steps_is_refused() -> None:
    with pytest.raises(SelftimeError, match="has no measured steps"):
        HistoryEntry.from_trace(Trace(source="run.json"), None)


def test_every_form_tells_the_commit() -> None:
    hostile = [entry(day, operators=100 + (day == 5)) for day in range(6)]
    commit = Commit("c" * 40, None, "<script>alert(1)</script>\x1b[31m")
    hostile[5] = replace(hostile[5], commit=commit)
    found = RecordingCheck("run.json", None, (), (), history=told(hostile))
    assert (found.state, found.exit_status) == ("over", 1)
    text, page = as_text(found), as_html(found)
    assert text.startswith(
        "A limit is exceeded: these runs show a change for the worse that is new\n\nHISTORY: 6 runs"
    )
    assert "operators rose by 1.0 %, 100 to 101, at ccccccccc" in " ".join(text.split())
    assert "\x1b" not in text + page
    assert "<script>" not in page
    assert page.count("<svg") == 2
    assert 'class="worse"' in page
    assert "ccccccccc" in as_markdown(found)
    [_, operators] = json.loads(as_json(found))["history"]["series"]
    [change] = operators["changes"]
    assert (change["index"], change["commit"], change["chance"]) == (5, "c" * 40, None)
