"""A comparison tells what changed, in a step, and nothing else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.compare.programs import Program, record, total

from selftime.compare import TABLES, Comparison, compare
from selftime.reports.compare import as_text
from selftime.trace import Trace

Recorded: TypeAlias = Callable[..., Trace]

SLOWER = {"aten::addmm": 440.0, "aten::relu": 50.0, "aten::sum": 20.0}


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    made: list[int] = []

    def make(**changes: Any) -> Trace:
        made.append(0)
        return record(replace(Program(), **changes), tmp_path, f"run{len(made)}")

    return make


OF_RUNS = ("run_parts", "run_steps")
"""The tables that have rows where both recordings have a ledger: `test_runs.py` has them."""


def told(found: Comparison) -> dict[str, list[str | None]]:
    return {name: table["verdict"].to_list() for name, table in found.tables().items()}


def test_tables_are_as_they_are_declared(recorded: Recorded) -> None:
    found = compare(recorded(), recorded(seed=1, modules=True), metric="host")
    for name, table in found.tables().items():
        assert table.schema == pl.Schema(TABLES[name].dtypes)
        for column in TABLES[name].columns:
            assert column.nullable or not table[column.name].null_count(), (name, column.name)


def test_a_recording_does_not_differ_from_itself(recorded: Recorded) -> None:
    trace = recorded()
    found = compare(trace, trace)
    assert found.notes == ()
    for name, table in found.tables().items():
        assert table.height or name in OF_RUNS, name
        assert (table["difference"] == 0).all()
        assert table["verdict"].null_count() == table.height


def test_the_other_way_round_is_the_negative(recorded: Recorded) -> None:
    before = recorded(operators={**SLOWER, "aten::old": 5.0})
    after = recorded(seed=1, operators={"aten::addmm": 400.0, "aten::relu": 50.0, "aten::mm": 7.0})
    there, back = compare(before, after), compare(after, before)
    other = {"new": "gone", "gone": "new", "slower": "faster", "faster": "slower"}
    for name, table in there.tables().items():
        if name in OF_RUNS:
            continue
        key = TABLES[name].columns[0].name
        swapped = back.tables()[name].select(
            key,
            before="after",
            after="before",
            difference=-pl.col("difference"),
            low=-pl.col("high"),
            high=-pl.col("low"),
            verdict=pl.col("verdict").replace(other),
        )
        assert_frame_equal(table.select(swapped.columns).sort(key), swapped.sort(key))
    totals = [
        one.tree.sort("path").select("total_difference", "total_verdict") for one in (there, back)
    ]
    assert (totals[0]["total_difference"] == -totals[1]["total_difference"]).all()
    assert totals[0]["total_verdict"].equals(totals[1]["total_verdict"].replace(other))


@pytest.mark.parametrize("metric", ["host", "device"])
def test_rows_add_up_to_the_whole_difference(recorded: Recorded, metric: Any) -> None:
    before, after = recorded(), recorded(seed=1, operators={**SLOWER, "aten::mm": 7.0}, steps=9)
    found = compare(before, after, metric=metric)
    whole = [t.view("steps").filter("counted") for t in (before, after)]
    parts = total(found.parts, "difference")
    device = [total(t.view("kernels", counted=True), "total") for t in (before, after)]
    means = [work / steps.height for work, steps in zip(device, whole, strict=True)]
    assert total(found.kernels, "difference") == pytest.approx(means[1] - means[0])
    if metric == "device":
        assert total(found.tree, "difference") == pytest.approx(means[1] - means[0])
    roots = found.tree.filter(pl.col("parent").is_null())
    assert total(roots, "total_difference") == pytest.approx(total(found.tree, "difference"))
    assert parts == pytest.approx(total(found.parts, "after") - total(found.parts, "before"))


def test_what_takes_longer_is_first(recorded: Recorded) -> None:
    found = compare(recorded(), recorded(seed=1, operators=SLOWER))
    first = found.tree.row(0, named=True)
    assert (first["name"], first["verdict"]) == ("aten::addmm", "slower")
    assert first["difference"] == pytest.approx(40e3, rel=0.2)
    assert first["low"] < 40e3 < first["high"]
    assert first["change"] == pytest.approx(0.1, rel=0.2)
    assert found.tree["verdict"].to_list()[1:] == [None, None]
    assert set(found.steps["verdict"]) == {"slower"}


def test_kernels_that_are_called_otherwise_change_no_operator(recorded: Recorded) -> None:
    found = compare(recorded(), recorded(kernel="hip_{0}_v2()"), kernels="name")
    assert (found.tree["difference"] == 0).all()
    assert set(found.kernels["verdict"]) == {"new", "gone"}


def test_more_steps_are_no_more_time(recorded: Recorded) -> None:
    found = compare(recorded(noise=0), recorded(noise=0, steps=20))
    assert np.abs(found.tree["difference"].to_numpy()).max() < 1
    assert found.steps["verdict"].null_count() == found.steps.height


def test_what_is_new_and_what_is_gone(recorded: Recorded) -> None:
    found = compare(recorded(), recorded(operators={"aten::addmm": 400.0, "aten::gelu": 60.0}))
    verdict = dict(found.tree.select("name", "verdict").iter_rows())
    assert verdict["aten::gelu"] == "new"
    assert verdict["aten::relu"] == verdict["aten::sum"] == "gone"


def test_a_module_is_slower_with_what_is_within_it(recorded: Recorded) -> None:
    found = compare(recorded(modules=True), recorded(modules=True, seed=1, operators=SLOWER))
    net = found.tree.row(by_predicate=pl.col("path") == "Net", named=True)
    inner = found.tree.row(by_predicate=pl.col("path") == "Net > aten::addmm", named=True)
    assert (net["verdict"], net["total_verdict"]) == (None, "slower")
    assert net["total_difference"] == pytest.approx(inner["difference"], rel=0.2)
    assert "Net " in as_text(found).partition("MODULES, ")[2].partition("MODULES AND")[0]


def test_modules_that_only_one_recorded_are_left_out_and_told(recorded: Recorded) -> None:
    plain, framed = recorded(), recorded(modules=True)
    found = compare(plain, framed)
    assert (found.tree["difference"] == 0).all()
    assert set(found.tree["kind"]) == {"operator"}
    assert [note for note in found.notes if "only the second recording has" in note]
    both = compare(framed, framed)
    assert set(both.tree["path"]) >= {"Net", "Net > aten::addmm"}


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"shapes": "[[128, 64]]"}, "shapes of inputs differ"),
        ({"metadata": {"deviceProperties": [{"id": 0, "name": "Other"}]}}, "devices differ"),
        ({"metadata": {"distributedInfo": {"rank": 1, "world_size": 4}}}, "ranks differ"),
        ({"metadata": {"selftime": {"torch": "2.9", "settings": {"threads": 2}}}}, "versions of"),
        ({"steps": 1}, "has only one steady step"),
    ],
)
def test_what_is_not_alike_is_told(recorded: Recorded, changes: dict[str, Any], note: str) -> None:
    known = {"torch": "2.8", "settings": {"threads": 4}}
    metadata = {"deviceProperties": [{"id": 0, "name": "One"}], "selftime": known}
    before = recorded(metadata=metadata)
    assert compare(before, recorded(metadata=metadata)).notes == ()
    merged = {**metadata, **changes.get("metadata", {})}
    found = compare(before, recorded(**{**changes, "metadata": merged}))
    assert [said for said in found.notes if note in said], found.notes


def test_recordings_without_a_device_are_compared_by_the_host(recorded: Recorded) -> None:
    found = compare(recorded(device=False), recorded(device=False, operators=SLOWER, seed=1))
    assert (found.metric, found.kernels.height) == ("host", 0)
    assert found.tree.row(0, named=True)["name"] == "aten::addmm"
    assert found.steps["time"].to_list() == ["host step time"]
    mixed = compare(recorded(), recorded(device=False))
    assert mixed.metric == "host"
    assert mixed.kernels["verdict"].unique().to_list() == ["gone"]


def test_recordings_without_steps_are_compared_whole(recorded: Recorded) -> None:
    before, after = recorded(marked=False, steps=1), recorded(marked=False, steps=1, seed=1)
    found = compare(before, after)
    assert len([note for note in found.notes if "has no steps" in note]) == 2
    assert found.tree["verdict"].null_count() == found.tree.height == 3
    whole = [total(trace.view("kernels"), "total") for trace in (before, after)]
    assert total(found.kernels, "difference") == whole[1] - whole[0]
