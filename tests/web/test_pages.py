"""What the page shows is what Python gives, for every view of every kind of trace."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from werkzeug.test import Client

from selftime import load
from selftime.progress import ProgressCallback
from selftime.reports.page_data.table_queries import MAX_RESPONSE_BYTES
from selftime.reports.tables.tabular import nan_and_infinity_as_null
from selftime.trace import Trace
from selftime.views import VIEWS, View
from selftime.web import PageApp, TracesAtPaths

KINDS = [
    "a100-2022-diff-control",
    "cpu-2024-gloo-rank34",
    "h100-2025-vit",
    "mi300-2025-resnet-ddp-recompute",
    "b200-2025-vllm-eager",
    "mi210-gpu-only",
    "v100-2021-resnet50-workers0.pt.trace",
]
EXACT = 1 << 53
THREADS = 8

every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT:
        return str(value)
    return value


def cells(page: dict[str, Any], name: str) -> list[Any]:
    column = page["columns"][name]
    if "values" in column:
        return list(column["values"])
    return [None if code is None else column["texts"][code] for code in column["codes"]]


def check(page: Any, table: pl.DataFrame, view: View[Any]) -> None:
    assert list(page["columns"]) == [column.name for column in view.columns]
    assert page["all"] == page["total"] == table.height
    shown = nan_and_infinity_as_null(table).head(page["rows"])
    for column in shown:
        text = column.cast(pl.String) if isinstance(column.dtype, pl.Enum) else column
        assert cells(page, column.name) == [plain(value) for value in text.to_list()], column.name
    assert set(page["totals"]) == set(view.sums)
    for name, total in page["totals"].items():
        told = table[name].drop_nulls()
        assert total == (pytest.approx(told.sum()) if len(told) else None), name


@pytest.mark.traces
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sweep(1)
def test_a_page_is_the_view(kind: str, real: Callable[[str], Path]) -> None:
    path = real(kind)
    client = Client(PageApp(TracesAtPaths([str(path)])))
    trace = load(path)
    assert isinstance(trace, Trace)
    listed: Any = client.get("/api/traces").json
    for view in VIEWS.values():
        answer = client.get(f"/api/view/{view.name}?.trace={listed['traces'][0]['id']}")
        assert answer.status_code == 200, answer.text
        assert len(answer.data) < MAX_RESPONSE_BYTES
        check(json.loads(answer.data), view(trace), view)


@pytest.mark.sweep(12)
@every_view
def test_a_view_of_little_is_a_page(view: View[Any], client: Client, trace: str) -> None:
    answer = client.get(f"/api/view/{view.name}?.trace={trace}")
    assert answer.status_code == 200, answer.text
    page: Any = answer.json
    assert page["rows"] == page["total"]


@every_view
@pytest.mark.sweep(10)
def test_options_are_those_of_python(view: View[Any], client: Client, tmp_path: Path) -> None:
    listed: Any = client.get("/api/traces").json
    loaded = load(tmp_path / "trace.json")
    assert isinstance(loaded, Trace)
    for option in view.options.values():
        for value in option.choices or (option.default,):
            words = {".trace": listed["traces"][0]["id"], option.name: str(value)}
            page: Any = client.get(f"/api/view/{view.name}", query_string=words).json
            assert page["options"][option.name] == value
            check(page, view(loaded, **{option.name: value}), view)


@every_view
@pytest.mark.parametrize("word", [str(1 << 62), str(-(1 << 62)), "-1", "1e300", "\0", "x" * 4000])
@pytest.mark.sweep(20)
def test_any_word_is_answered_or_refused(
    view: View[Any], word: str, client: Client, trace: str
) -> None:
    for option in view.options:
        answer = client.get(f"/api/view/{view.name}", query_string={".trace": trace, option: word})
        assert answer.status_code in (200, 400), (option, answer.text)
        assert len(answer.data) < MAX_RESPONSE_BYTES


@every_view
def test_only_declared_columns_are_summed(view: View[Any]) -> None:
    declared = {column.name: column for column in view.columns}
    for name in view.sums:
        assert declared[name].unit in {"ns", "bytes", "count", "flops", "ratio"}, name
        assert declared[name].dtype.is_numeric(), name


SHARED_ROWS: dict[str, dict[str, Any]] = {"idle": {"threshold": 0}, "flame": {"min_share": 0.0}}
"""Options with which no row is left out."""


@pytest.mark.traces
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sweep(1)
def test_a_sum_is_the_same_however_rows_are_grouped(kind: str, real: Callable[[str], Path]) -> None:
    trace = load(real(kind))
    assert isinstance(trace, Trace)
    for view in VIEWS.values():
        options = SHARED_ROWS.get(view.name, {})
        choices = view.options["by"].choices if "by" in view.options else ()
        tables = [view(trace, by=choice, **options) for choice in choices]
        for name in view.sums:
            sums = {t[name].sum() for t in tables if t[name].null_count() < t.height}
            assert len(sums) <= 1 or max(sums) == pytest.approx(min(sums)), (view.name, name)


def test_questions_at_once_are_answered_alike(write: Callable[..., Path]) -> None:
    opened: list[str] = []
    files = TracesAtPaths([str(write())])

    class Counted(TracesAtPaths):
        def open(self, trace_id: str, *, progress: ProgressCallback | None = None) -> Trace:
            opened.append(trace_id)
            return super().open(trace_id, progress=progress)

    files.__class__ = Counted
    client = Client(PageApp(files))
    [listed] = files.listed_traces()
    together = Barrier(THREADS)

    def ask(number: int) -> bytes:
        together.wait()
        view = ("operators", "overview")[number % 2]
        data: bytes = client.get(f"/api/view/{view}?.trace={listed.id}").data
        return data

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(ask, range(THREADS)))
    assert len(set(answers)) == 2
    assert opened == [listed.id]


def test_sorting_does_not_compute_again(
    client: Client, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: Any = client.get(f"/api/view/operators?.trace={trace}&.sort=name").json
    monkeypatch.setattr(View, "__call__", None)
    again: Any = client.get(f"/api/view/operators?.trace={trace}&.sort=-name").json
    assert cells(again, "name") == cells(first, "name")[::-1]


def test_a_filter_in_the_address_is_one(client: Client, trace: str) -> None:
    where = json.dumps([{"column": "count", "op": "from", "value": "2"}])
    words = {".trace": trace, ".where": where}
    page: Any = client.get("/api/view/operators", query_string=words).json
    assert cells(page, "name") == ["aten::mm"]
    assert page["totals"]["count"] == 2
    table = client.get("/api/view/operators.csv", query_string=words).text
    assert table.count("\n") == 2


def test_a_table_equals_its_page(client: Client, trace: str, tmp_path: Path) -> None:
    loaded = load(tmp_path / "trace.json")
    assert isinstance(loaded, Trace)
    text = client.get(f"/api/view/health.csv?.trace={trace}").data
    expected = loaded.view("health")
    assert_frame_equal(pl.read_csv(text).select("check"), expected.select("check"))
