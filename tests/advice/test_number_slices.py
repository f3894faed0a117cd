"""The slices that the numbers of the advice stand for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from selftime.advice.account.account_building import account_of_step
from selftime.advice.advice_result import Advice, Health, TypicalStep
from selftime.advice.number_slices import (
    NumberSlices,
    account_row_ids,
    host_slices_within,
    slices_of_numbers,
)
from selftime.advice.replay import CutHostTime, RemoveWaits, ScaleDeviceWork
from selftime.advice.rule_outcomes import Evidence, Finding, Fix, Where
from selftime.intervals import Intervals, length, union
from selftime.testing import sketch
from selftime.trace import Trace

STEPS = """
    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | ddd         ddd         ddd
    cpu 1  |    aaa         aaa         aaa
    call 1 |     kxyyyyyy    kxyyyyyy    kxyyyyyy
    gpu 7  |      kkkkkkk     kkkkkkk     kkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:3 main
    a = aten::mm; line = train.py:7 step
    y = cudaStreamSynchronize
"""

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def ids(trace: Trace, name: str, category: str = "") -> list[int]:
    named = trace.slices.filter(trace.slices["name"].cast(str) == name)
    if category:
        named = named.filter(named["category"].cast(str) == category)
    return named["id"].to_list()


def advice(trace: Trace, **more: Any) -> Advice:
    finding = Finding(
        id="slow-1",
        rule="slow",
        title="It waits",
        where=Where("train.py", 3, "main", "stack"),
        covers=("A1",),
        confidence="high",
        fix=Fix("Do not wait."),
    )
    finding = replace(finding, **more)
    account = account_of_step(trace, (finding,))
    steps = TypicalStep(3)
    return Advice(Health("good"), steps, findings=(finding,), account=account, trace=trace)


def numbers(said: Advice) -> dict[str, NumberSlices]:
    return {one.key: one for one in slices_of_numbers(said)}


def test_without_findings_and_steps_no_number_stands_for_slices() -> None:
    assert slices_of_numbers(Advice(Health("good"))) == ()
    assert slices_of_numbers(Advice(Health("good"), trace=Trace())) == ()


def test_rows_of_the_account_stand_for_all_their_slices_or_time_of_none() -> None:
    trace = sketch(STEPS)
    said = advice(trace)
    found = numbers(said)
    assert said.account is not None
    rows = dict(zip(account_row_ids(said.account.rows), said.account.rows, strict=True))
    by_class = {row.time_class: found[f"account:{id_}"] for id_, row in rows.items()}
    # the first step does not count: it is longer than the others, or may be
    assert by_class["data_wait"].slices.tolist() == ids(trace, LOADER)[1:]
    assert by_class["compute"].slices.tolist() == ids(trace, "k", "kernel")[1:]
    assert not any(row.are_examples for row in by_class.values())


def test_slices_and_stretches_of_a_row_cover_its_time() -> None:
    trace = sketch(STEPS)
    account = account_of_step(trace, ())
    assert account is not None
    for row in account.rows:
        inside, stretches = trace.slices[row.slices], row.stretches
        starts = [*inside["start"], *stretches.starts]
        ends = [*(inside["start"] + inside["duration"]), *stretches.ends]
        assert row.ns * account.steps <= length(union(starts, ends)), row


def test_idle_time_is_of_no_slice_though_work_begins_after_it() -> None:
    trace = sketch("""
        column = 1 ms
        mark 1 | ssssssssss
        cpu 1  | aa
        call 1 |  k    w
        gpu 7  |    kkkk
        s = ProfilerStep#1
        a = aten::mm
        w = cudaDeviceSynchronize
    """)
    account = account_of_step(trace, ())
    assert account is not None
    kernels = set(ids(trace, "k", "kernel"))
    for row in account.rows:
        if row.time_class in {"idle", "launch"}:
            assert not kernels & set(row.slices.tolist()), row


def test_the_slices_of_a_finding_are_those_that_its_fix_changes() -> None:
    trace = sketch(STEPS)
    waits, kernels = ids(trace, "cudaStreamSynchronize"), ids(trace, "k", "kernel")
    cut = CutHostTime(union([3_000_000], [6_000_000]))
    for changes, expected in (
        ((RemoveWaits(np.array(waits)),), waits),
        ((ScaleDeviceWork(np.array(kernels)), RemoveWaits(np.array(waits))), [*waits, *kernels]),
        ((cut,), ids(trace, "aten::mm")[:1]),
    ):
        found = numbers(advice(trace, changes=changes))["finding:slow-1"]
        assert found.slices.tolist() == sorted(expected)


def test_a_finding_that_changes_nothing_has_the_time_that_the_account_gives_it() -> None:
    trace = sketch(STEPS)
    assert numbers(advice(trace))["finding:slow-1"].slices.tolist() == ids(trace, LOADER)[1:]


def test_measurements_have_all_their_slices_or_examples() -> None:
    trace = sketch(STEPS)
    kernels = ids(trace, "k", "kernel")
    evidence = (
        Evidence("all", 1.0, "ms", (kernels[0],), np.array(kernels[::-1])),
        Evidence("some", 1.0, "ms", (kernels[1],)),
        Evidence("none", 1.0, "ratio"),
        Evidence("another rank's", 1.0, "ms", (trace.slices.height + 5,)),
        Evidence("first and last", 1.0, "ms", (-1, 0, trace.slices.height - 1)),
    )
    found = numbers(advice(trace, evidence=evidence, count_per_step=1.0))
    assert found["finding:slow-1:1"].slices.tolist() == kernels
    assert not found["finding:slow-1:1"].are_examples
    assert found["finding:slow-1:2"].slices.tolist() == [kernels[1]]
    assert found["finding:slow-1:2"].are_examples
    assert "finding:slow-1:3" not in found
    assert "finding:slow-1:4" not in found
    assert found["finding:slow-1:5"].slices.tolist() == [0, trace.slices.height - 1]
    # three in three steps: those of the first measurement
    assert found["finding:slow-1:count"].slices.tolist() == kernels


@pytest.mark.parametrize(
    ("times", "names", "stretches"),
    [
        (union([10_000], [30_000]), ["aten::mm", "aten::add"], 0),
        (union([40_000], [60_000]), ["frame"], 0),
        (union([40_000], [70_000]), ["frame", "beside"], 0),
        (union([120_000], [125_000]), [], 1),
        (union([], []), [], 0),
        # of a part of a slice it is that slice, and of two the one in the middle
        (union([20_000], [24_000]), ["aten::add"], 0),
        (union([12_000, 150_000], [24_000, 160_000]), ["aten::copy_"], 1),
    ],
)
def test_host_time_is_of_the_outermost_operators_else_of_frames(
    times: Intervals, names: list[str], stretches: int
) -> None:
    trace = sketch("""
        mark 1   | ssssssssss
        python 1 | fffffffggg
        python 1 |     hhi
        cpu 1    |  ab
        cpu 1    |  c
        a = aten::mm
        b = aten::add
        c = aten::copy_
        h = frame
        i = beside
        s = ProfilerStep#1
    """)
    found, rest = host_slices_within(trace, times)
    assert trace.slices["name"].cast(str)[found.tolist()].to_list() == names
    assert rest.starts.size == stretches


def test_ids_of_rows_are_unique_and_the_same_in_each_recording_of_the_program() -> None:
    first, second = (
        account_of_step(sketch(text), ()) for text in (STEPS, STEPS.replace("1 ms", "2 ms"))
    )
    assert first is not None
    assert second is not None
    told = account_row_ids(first.rows)
    assert len(set(told)) == len(told)
    assert sorted(told) == sorted(account_row_ids(second.rows))
    assert len(set(account_row_ids([first.rows[0]] * 3))) == 3
