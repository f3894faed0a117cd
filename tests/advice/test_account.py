"""The account in the advice: rows that add up to the step, and a verdict of each."""

import json
from collections.abc import Callable
from dataclasses import replace
from string import ascii_letters
from typing import Any

import jsonschema
import numpy as np
import pytest

from selftime.advice import RULES, Rule, advise
from selftime.advice.account.account_building import account_of_step
from selftime.advice.account.account_rows import AccountRow, StepAccount
from selftime.advice.advice_result import Advice
from selftime.advice.replay import CutHostTime, RemoveWaits, ScaleDeviceWork
from selftime.advice.rule_outcomes import Finding, Fix, Where
from selftime.advice.savings.claims import RunClaim
from selftime.advice.savings.saving import Saving
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.intervals import union
from selftime.reports.schemas import schema
from selftime.testing import sketch, sketch_job
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
"""Each step: 3 ms of data, 2 ms of launches, 7 ms of a kernel."""
WAITING = """
    column = 1 ms
    mark 1 | ssssssssssssssss
    cpu 1  | aaa     bbb
    call 1 |  kyyyyy  k yyyyy
    gpu 7  |   kkkkk     kkkk
    s = ProfilerStep#1
    a = aten::mm; line = train.py:7 step
    b = aten::add; line = train.py:8 step
    y = cudaStreamSynchronize
"""


def found(trace: Trace, *findings: Finding) -> StepAccount:
    account = account_of_step(trace, findings)
    assert account is not None
    assert sum(row.ns for row in account.rows) == round(account.step_ms * 1e6)
    return account


def finding(upper_ms: float | None = None, **more: Any) -> Finding:
    plain = Finding(
        id="slow-1",
        title="It waits",
        where=Where("train.py", 3, "main", "stack"),
        confidence="high",
        fix=Fix("Do not wait."),
        saving=Saving(upper_ms=upper_ms),
    )
    return replace(plain, **more)


def times(account: StepAccount, verdict: str) -> dict[str, float]:
    return {row.time_class: row.ms for row in account.rows if row.verdict == verdict}


def test_without_steps_there_is_no_account() -> None:
    assert account_of_step(Trace(), ()) is None
    assert advise(Trace()).account is None


def test_time_that_nothing_claims_is_unexplained_and_says_what_would_tell() -> None:
    account = found(sketch(STEPS))
    assert times(account, "unexplained") == {"compute": 7.0, "data_wait": 3.0, "launch": 2.0}
    assert (account.unexplained_ms, account.found_ms, account.step_ms) == (12.0, 0.0, 12.0)
    assert (account.bound_by, account.basis, account.steps) == (("compute",), "recorded", 2)
    assert all(row.at_most_ms == row.ms for row in account.rows)
    assert "record_shapes=True" in account.rows[0].text
    assert account.rows[0].where == Where("train.py", 7, "step", "stack")


def test_host_time_that_a_fix_removes_is_its_finding() -> None:
    cut = CutHostTime(union([0, 12_000_000, 24_000_000], [2_000_000, 14_000_000, 26_000_000]))
    account = found(sketch(STEPS), finding(1.5, changes=(cut,)))
    assert times(account, "finding") == {"data_wait": 2.0}
    row = next(row for row in account.rows if row.verdict == "finding")
    assert (row.finding, row.at_most_ms, row.text) == ("slow-1", 1.5, "It waits")
    assert (row.where.line, account.found_ms, account.unexplained_ms) == (3, 2.0, 10.0)


def test_device_work_that_a_fix_removes_is_its_finding() -> None:
    trace = sketch(STEPS)
    kernels = trace.device_args["id"].to_numpy().astype(np.int64)
    account = found(trace, finding(changes=(ScaleDeviceWork(kernels, 0.5),)))
    assert times(account, "finding") == {"compute": 7.0}
    assert account.rows[0].at_most_ms == 7.0


def test_host_time_behind_device_work_is_not_claimed() -> None:
    cut = CutHostTime(union([5_000_000], [12_000_000]))
    assert found(sketch(STEPS), finding(changes=(cut,))).found_ms == 0.0


def test_a_wait_costs_the_time_until_the_device_works_again() -> None:
    trace = sketch(WAITING)
    waits = trace.slices.filter(trace.slices["name"] == "cudaStreamSynchronize")["id"]
    remove = RemoveWaits(waits.to_numpy().astype(np.int64)[:1])
    account = found(trace, finding(changes=(remove,)))
    assert account.found_ms == 5.0  # from the end of the first kernel to the begin of the second
    assert found(trace).found_ms == 0.0


def test_of_two_findings_the_first_has_the_time() -> None:
    cut = CutHostTime(union([0], [36_000_000]))
    first, second = finding(changes=(cut,)), finding(id="slow-2", changes=(cut,))
    assert {row.finding for row in found(sketch(STEPS), first, second).rows} == {"slow-1", None}
    assert {row.finding for row in found(sketch(STEPS), second, first).rows} == {"slow-2", None}


def test_a_finding_without_changes_claims_the_time_of_its_kind_at_its_line() -> None:
    assert times(found(sketch(STEPS), finding(covers=("A1",))), "finding") == {"data_wait": 3.0}
    elsewhere = finding(covers=("A1",), where=Where("train.py", 7, "step", "stack"))
    assert found(sketch(STEPS), elsewhere).found_ms == 0.0


def test_initialisation_is_all_work_that_is_done_only_once() -> None:
    """At every line, and nothing else at the line where most of it is."""
    drawing = """
        column = 1 ms
        mark 1 | ssssssssssssssssssssssssssssssssssss
        cpu 1  | aaaaaaaaaaaabbbbbbbbbbbba b a b aaaa
        call 1 |  kkkkkkkkkkk mmmmmmmmmmmk m k m
        gpu 7  |            x           y x y x y
        s = ProfilerStep#1
        a = aten::mm; line = train.py:7 step
        b = aten::add; line = train.py:8 step
        k = cudaLaunchKernel
        m = cudaLaunchKernel
        x = gemm; launched_by = k
        y = add; launched_by = m
    """
    account = advise(sketch(drawing)).account
    assert account is not None
    of_rule = [row for row in account.rows if (row.finding or "").startswith("cold_start-")]
    assert {(row.where.line, row.time_class) for row in of_rule} == {(7, "launch"), (8, "launch")}
    assert all(11.0 <= row.ms <= 12.0 for row in of_rule)
    assert "compute" in times(account, "unexplained")


def test_operators_that_take_much_of_a_finding_are_rows_of_their_own_without_lines() -> None:
    """The name of one does not stand for the time of another."""
    drawing = """
        column = 1 ms
        mark 1 | ssssssssssssssssssssssssssssssssssssssssssss
        cpu 1  | aaaaaaaaaaaaaaaaabbbbbbbbbbbbba b a b a b aa
        call 1 |  kkkkkkkkkkkkkkkk mmmmmmmmmmmmk m k m k m
        gpu 7  |                 x            y x y x y x y
        s = ProfilerStep#1
        a = aten::to
        b = aten::conv2d
        k = cudaMalloc
        m = cudaLaunchKernel
        x = fill; launched_by = k
        y = conv; launched_by = m
    """
    account = advise(sketch(drawing)).account
    assert account is not None
    of_rule = [row for row in account.rows if row.is_initialisation]
    assert [row.what for row in of_rule] == ["aten::to", "aten::conv2d"]
    assert [round(row.ms) for row in of_rule] == [17, 13]


def test_a_finding_about_the_run_claims_nothing_of_the_step() -> None:
    assert found(sketch(STEPS), finding(covers=("A1",), claim=RunClaim(9))).found_ms == 0.0


def test_work_near_the_peak_is_needed() -> None:
    drawing = """
        column = 1 ms
        mark 1 | sssssssssssstttttttttttt
        cpu 1  | aab         aab
        call 1 | k xyyyyyyyy k xyyyyyyyy
        gpu 7  |  kkkkkkxxxx  kkkkkkxxxx
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::mm; input_shapes = [[4096, 4096], [4096, 4096]]; input_types = ["float", "float"]
        b = aten::mm; input_shapes = [[128, 128], [128, 128]]; input_types = ["float", "float"]
        y = cudaDeviceSynchronize
        device = {"name": "Tesla V100-SXM2-16GB"}
    """
    account = found(sketch(drawing))
    needed = next(row for row in account.rows if row.verdict == "needed")  # 137 GFLOP
    assert ("useful work at" in needed.text, needed.at_most_ms, account.needed_ms) == (True, 0, 6)
    [slow] = [row for row in account.rows if "runs at <1 % of the device's peak" in row.text]
    assert (slow.verdict, 0.9 < (slow.at_most_ms or 0.0) / slow.ms < 1.0) == ("unexplained", True)


def test_a_fast_product_on_the_cpu_is_needed_and_a_slow_one_is_not() -> None:
    drawing = """
        column = 1 ms
        mark 1 | ssssssssss
        cpu 1  | aaaaabbbbb
        s = ProfilerStep#1
        a = aten::mm; input_shapes = [[1024, 1024], [1024, 1024]]; input_types = ["float", "float"]
        b = aten::mm; input_shapes = [[128, 128], [128, 128]]; input_types = ["float", "float"]
        facts = {"threads": 8}
    """
    account = found(sketch(drawing))
    assert account.needed_ms == 5.0
    assert "53.7 GFLOP/s" in next(row.text for row in account.rows if row.verdict == "needed")


CPU_STEP = """
    column = 1 ms
    mark 1 | ssssssssssssssssssss
    cpu 1  | aaaaabbbbbcccccddddd
    s = ProfilerStep#1
    a = aten::mm; input_shapes = [[1024, 1024], [1024, 1024]]; input_types = ["float", "float"]; line = net.py:1 f
    b = aten::mm; input_shapes = [[256, 256], [256, 256]]; input_types = ["float", "float"]; line = net.py:2 f
    c = aten::add; input_shapes = [[8000000], [8000000]]; input_types = ["float", "float"]; line = net.py:3 f
    d = aten::relu; input_shapes = [[800000]]; input_types = ["float"]; line = net.py:4 f
    facts = {"threads": 2}
"""  # noqa: E501 - what a letter stands for is on one line


def rows_by_line(drawing: str) -> dict[int | None, tuple[str, str]]:
    return {row.where.line: (row.verdict, row.text) for row in found(sketch(drawing)).rows}


def test_work_on_a_cpu_is_held_against_what_the_cpu_was_measured_to_do() -> None:
    rows = rows_by_line(CPU_STEP + "run | 2 cpu threads: float32 600 GFLOP/s, copies 24 GB/s")
    multiplies = "of the rate at which 2 threads of this CPU multiply matrices"
    copies = "of the rate at which 2 threads of this CPU copy as many bytes"
    by_shape = "`selftime view operators --by shape` lists its shapes and rates"
    compiling = (
        "a trial of `torch.compile`, which passes over memory once for several operators, "
        "tells more"
    )
    assert rows == {
        1: ("needed", f"useful work at 72 % {multiplies}"),  # 2.1 GFLOP in 5 ms
        2: ("unexplained", f"runs at 1 % {multiplies}, and no rule explains why; {by_shape}"),
        3: ("needed", f"useful work at 80 % {copies}"),  # 96 MB in 5 ms
        4: ("unexplained", f"runs at 5 % {copies}, and no rule explains why; {compiling}"),
    }


def test_on_a_cpu_measured_with_other_threads_the_peak_is_unknown() -> None:
    rows = rows_by_line(CPU_STEP + "run | 1 cpu thread: float32 600 GFLOP/s, copies 24 GB/s")
    assert rows[1] == (
        "needed",
        "useful work: products of matrices at 215 GFLOP/s or more for each thread",
    )
    assert "how near the peak of this CPU it runs is unknown: " in rows[3][1]


def test_small_rows_of_a_class_are_one_row() -> None:
    drawing = f"""
        column = 1 us
        mark 1 | {"s" * 1200}
        cpu 1  | {"a" * 1190}bbbccc
        s = ProfilerStep#1
        a = aten::mm; line = train.py:3 main
        b = aten::add; line = train.py:4 main
        c = aten::mul; line = train.py:5 main
    """
    account = found(sketch(drawing))
    small = [row for row in account.rows if row.verdict == "small" and row.time_class == "compute"]
    assert [(row.ns, row.where, row.places, row.text) for row in small] == [
        (6_000, Where(), 2, "less than 2 % of the step")
    ]


def test_many_small_rows_are_not_called_small() -> None:
    letters = ascii_letters.replace("s", "")
    names = "\n".join(
        f"{one} = aten::op{at}; line = a.py:{at} main" for at, one in enumerate(letters)
    )
    drawing = f"mark 1 | {'s' * 51}\ncpu 1  | {letters}\ns = ProfilerStep#1\n{names}"
    [row] = found(sketch(f"column = 1 ms\n{drawing}")).rows
    assert (row.verdict, row.ms, row.where) == ("unexplained", 51.0, Where())
    assert row.places == 51
    assert "that needs input shapes" in row.text
    shaped = sketch(f"column = 1 ms\n{drawing}\na = aten::op; input_shapes = [[2]]")
    assert found(shaped).rows[0].text == (
        "each of them is a small part of the step; the view `account` lists them"
    )


def test_short_operators_are_told_to_be_dispatch() -> None:
    drawing = f"""
        column = 1 us
        mark 1 | {"s" * 40}
        cpu 1  | {"aaa " * 10}
        s = ProfilerStep#1
        a = aten::add
    """
    row = found(sketch(drawing)).rows[0]
    assert row.text.startswith(
        "10 operators a step, 100 % of the time in those shorter than 12.0 µs: mostly their "
    )
    launched = next(row for row in found(sketch(STEPS)).rows if row.time_class == "launch")
    assert launched.text.startswith("one operator a step, of 1.00 ms: no rule explains it; ")
    longer = found(sketch(drawing.replace("1 us", "1 ms"))).rows[0]
    assert "operators a step" not in longer.text


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("<built-in method run_backward of torch._C._EngineBase object at 0x7f>", "autograd's own"),
        (
            "<built-in method conv2d of type object at 0x7f>",
            "no rule explains it; it is a function",
        ),
        ("train.py(7): step", "no rule explains it; the view `flame` shows its functions"),
    ],
)
def test_time_between_operators_is_told_by_the_frame(frame: str, reason: str) -> None:
    drawing = f"""
        column = 1 ms
        mark 1   | ssssssssss
        python 1 | ffffffffff
        cpu 1    | a        a
        s = ProfilerStep#1
        a = aten::add
        f = {frame}
    """
    [row] = [row for row in found(sketch(drawing)).rows if row.time_class == "python"]
    assert row.text.startswith(reason)


def test_a_long_operator_among_many_short_ones_is_no_dispatch() -> None:
    drawing = f"""
        column = 3 us
        mark 1 | {"s" * 100}
        cpu 1  | {"a " * 10}{"b" * 60}
        s = ProfilerStep#1
        a = aten::add
        b = aten::sort
    """
    rows = found(sketch(drawing)).rows
    assert next(row.what for row in rows if row.time_class == "compute") == "aten::sort"
    assert not any("dispatch" in row.text for row in rows if row.what == "aten::sort")
    at_one_line = drawing.replace("aten::add", "aten::add; line = a.py:3 main")
    at_one_line = at_one_line.replace("aten::sort", "aten::sort; line = a.py:3 main")
    [row] = [row for row in found(sketch(at_one_line)).rows if row.time_class == "compute"]
    assert "dispatch" not in row.text


def test_an_objects_address_is_no_part_of_a_name() -> None:
    drawing = f"""
        column = 1 ms
        mark 1   | {"s" * 40}
        python 1 | {"f" * 40}
        s = ProfilerStep#1
        f = <built-in method sort of list object at 0x7f3e8bc17c00>
    """
    rows = found(sketch(drawing)).rows
    assert [row.what for row in rows] == ["<built-in method sort of list object>"]


def test_the_cost_of_recording_is_taken_from_the_host() -> None:
    facts = 'facts = {"overhead": {"ratio": 1.2}}'
    account = found(sketch(f"{STEPS}\n    {facts}"))
    assert (account.basis, account.step_ms) == ("unrecorded", 10.0)
    assert times(account, "unexplained") == {"compute": 7.0, "data_wait": 1.8, "launch": 1.2}


def test_json_has_the_account_before_the_findings() -> None:
    advice = advise(sketch(STEPS))
    document = json.loads(advice.to_json())
    jsonschema.Draft202012Validator(schema("advice")).validate(document)
    assert list(document).index("account") < list(document).index("findings")
    place = ["where", "called_at", "what", "places", "computes_on_host"]
    told = ["verdict", "finding", "at_most_ms", "text"]
    keys = ["class", "ms", "share", *place, *told]
    assert [list(row) for row in document["account"]["rows"]] == [keys] * 5
    assert_adds_up(advice)


def assert_adds_up(advice: Advice) -> None:
    """The account of a trace is its steps, to the nanosecond, in the object and in the JSON."""
    assert advice.trace is not None
    account, steps = advice.account, steps_with_counted_flags(advice.trace)
    counted = steps.filter("counted") if steps["counted"].any() else steps
    if account is None:
        assert advice.health.verdict == "unusable" or not counted.height
        return
    whole = int((counted["done"] - counted["begin"]).sum())
    if account.basis == "recorded":
        assert abs(round(account.step_ms * 1e6) - whole / account.steps) <= 0.5
    document = json.loads(advice.to_json())["account"]
    step_ns = round(document["step_ms"] * 1e6)
    assert sum(round(row["ms"] * 1e6) for row in document["rows"]) == step_ns
    by_verdict = [document[f"{name}_ms"] for name in ("found", "needed", "small", "unexplained")]
    assert sum(round(ms * 1e6) for ms in by_verdict) == step_ns
    assert sum(round(part["ms"] * 1e6) for part in document["parts"]) == step_ns
    ids = {one.id for one in advice.findings}
    assert all(is_sound(row, ids) for row in account.rows)


def is_sound(row: AccountRow, finding_ids: set[str]) -> bool:
    is_claimed = row.verdict == "finding"
    within = row.at_most_ms is None or 0 <= row.at_most_ms <= row.ms
    return row.ms > 0 and within and (row.finding in finding_ids if is_claimed else not row.finding)


@pytest.mark.traces
def test_the_rows_add_up_on_real_traces(
    real_names: list[str], real: Callable[[str], Trace]
) -> None:
    for name in real_names:
        assert_adds_up(advise(real(name)))


def test_memory_bandwidth_bounds_a_step_of_work_near_it() -> None:
    drawing = """
        column = 1 ms
        mark 1 | ssssssssss
        cpu 1  | a
        call 1 | kyyyyyyyyy
        gpu 7  |  kkkkkkkkk
        s = ProfilerStep#1
        a = aten::add; input_shapes = [[SIZE], [SIZE]]; input_types = ["float", "float"]
        y = cudaDeviceSynchronize
        device = {"name": "Tesla V100-SXM2-16GB"}
    """
    assert found(sketch(drawing.replace("SIZE", "600000000"))).bound_by == ("memory_bandwidth",)
    assert found(sketch(drawing.replace("SIZE", "60000"))).bound_by == ("compute",)


def test_a_wait_costs_as_much_host_time_after_it_as_its_fix_is_estimated_to_save() -> None:
    drawing = """
        column = 1 ms
        mark 1 | ssssssssssssssssssss
        cpu 1  | aaa     bbbbbbbb
        call 1 |  kyyyyy  k    l yyyy
        gpu 7  |   kkkkk   kk   ll
        s = ProfilerStep#1
        a = aten::mm; line = train.py:7 step
        b = aten::add; line = train.py:8 step
        y = cudaStreamSynchronize
    """
    trace = sketch(drawing)
    waits = trace.slices.filter(trace.slices["name"] == "cudaStreamSynchronize")["id"]
    remove = RemoveWaits(waits.to_numpy().astype(np.int64)[:1])
    little = finding(changes=(remove,), saving=Saving.of_step(20.0, 1.0, method="replay"))
    more = finding(changes=(remove,), saving=Saving.of_step(20.0, 7.0, method="replay"))
    claimed = [found(trace, one).found_ms for one in (finding(changes=(remove,)), little, more)]
    assert claimed[0] == claimed[1] < claimed[2] <= 9.0
    nobody = finding(changes=(RemoveWaits(np.zeros(0, np.int64)),))
    assert found(trace, nobody).found_ms == 0.0


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.sweep(25)
def test_the_rows_add_up_on_what_a_rule_fires_on(rule: Rule) -> None:
    """And a finding that saves time of a step on the host or the device claims some of it."""
    for drawing in rule.drawings("Fires on"):
        drawn = sketch_job(drawing)
        if isinstance(drawn, Trace):
            advice = advise(drawn, rules={rule.name: rule})
            assert_adds_up(advice)
            claimed = {row.finding for row in advice.account.rows} if advice.account else set()
            saving = {one.id for one in advice.findings if one.saving.estimate_ms is not None}
            assert saving <= claimed, drawing


def test_waits_of_the_run_are_those_of_the_step() -> None:
    trace = sketch("""
        column = 1 ms
        mark 1 | ssssssssss
        mark 1 | ddd
        cpu 1  |    mmmmmmm
        s = ProfilerStep#1
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
        m = aten::mm
    """)
    told = {"data_waits_of_run": ("M10", "A1"), "slow_imports": ("M9",)}
    claimed = {
        rule: found(trace, replace(finding(), rule=rule, covers=covers, claim=RunClaim(5))).found_ms
        for rule, covers in told.items()
    }
    assert claimed == {"data_waits_of_run": 3.0, "slow_imports": 0.0}


def test_what_a_closure_runs_is_not_the_optimizers() -> None:
    """What is between two closures of one step, as LBFGS calls them, is the optimizer's."""
    trace = sketch("""
        column = 1 ms
        mark 1 | sssssssssssssssstttttttttttttttt
        mark 1 | oooooooooooooooopppppppppppppppp
        cpu 1  | ffffggmmffffggmmffffggmmffffggmm
        s = ProfilerStep#1
        t = ProfilerStep#2
        o = Optimizer.step#LBFGS.step; line = train.py:9 main
        p = Optimizer.step#LBFGS.step; line = train.py:9 main
        f = aten::linear; sequence = 7; line = train.py:5 forward
        g = autograd::engine::evaluate_function: AddmmBackward0
        m = aten::mul_; line = train.py:9 main
    """)
    named: dict[str | None, float] = {}
    for row in found(trace).rows:
        named[row.what] = named.get(row.what, 0.0) + row.ms
    assert named["Optimizer.step#LBFGS.step"] == 4
    assert named["aten::linear"] == 8


def test_a_name_stands_for_a_row_with_at_least_half_of_its_time() -> None:
    drawing = """
        column = 1 ms
        mark 1 | sssssssssstttttttttt
        cpu 1  | aaaabbbcccaaaabbbccc
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::add; line = train.py:7 main
        b = aten::mul; line = train.py:7 main
        c = aten::sub; line = train.py:7 main
    """
    [several] = found(sketch(drawing)).rows
    [most] = found(sketch(drawing.replace("aaaabbbccc", "aaaaaabbcc"))).rows
    assert (several.what, most.what) == (None, "aten::add")
    assert several.where.line == most.where.line == 7


def test_rows_of_a_finding_keep_their_lines() -> None:
    trace = sketch("""
        column = 1 ms
        mark 1 | sssssssssstttttttttt
        cpu 1  | aaaaaabbbcaaaaaabbbc
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::mm; line = train.py:7 main
        b = aten::mm; line = train.py:8 main
        c = aten::add; line = train.py:9 main
    """)
    claims = finding(changes=(CutHostTime(union([0, 10_000_000], [9_000_000, 19_000_000])),))
    rows = [row for row in found(trace, claims).rows if row.verdict == "finding"]
    assert [(row.where.line, row.ms) for row in rows] == [(7, 6), (8, 3)]


def test_what_a_script_calls_outside_of_functions_has_the_line_of_the_call() -> None:
    """Where one is recorded within the call, and not two."""
    drawing = """
        column = 1 ms
        mark 1 | sssssssssstttttttttt
        python 1 | mmmmmmmmmmmmmmmmmmmm
        python 1 | bbbbbcccccbbbbbccccc
        python 1 |  rrrr      rrrr
        cpu 1  |  aa d    d aa d    d
        s = ProfilerStep#1
        t = ProfilerStep#2
        m = /job/program.py(1): <module>
        b = torch/_tensor.py(570): backward
        c = torch/nn/utils/clip_grad.py(5): clip_grad_norm_
        r = <built-in method run_backward of torch._C._EngineBase object at 0x7f>
        a = aten::add; line = /job/program.py:7 <module>
        d = aten::add
    """
    python = [row.where.line for row in found(sketch(drawing)).rows if row.time_class == "python"]
    assert sorted(python, key=str) == [7, None]
    several = drawing.replace("d = aten::add", "d = aten::add; line = /job/program.py:8 <module>")
    told = [row.where.line for row in found(sketch(several)).rows if row.time_class == "python"]
    assert sorted(told, key=str) == [8, None]


def test_a_finding_about_the_evaluations_of_the_run_claims_no_row_of_the_step() -> None:
    """The network's line is the same in both, and so is the time of none of them."""
    drawn = """
        column = 10 us
        run | before 1 s
        run | 50 training 100 ms
        run | training 600 ms: evaluation 500 ms, program 500 ms at net.py:4 forward
        run | 2 evaluations with 40 nodes each
        mark 1 | sssssssssssstttttttttttt
        cpu 1  | aaaaaabbbbb aaaaaabbbbb
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::linear; sequence = 1; line = net.py:4 forward
        b = autograd::engine::evaluate_function: AddmmBackward0; sequence = 1; forward_thread = 1
    """
    told = advise(
        sketch(drawn), rules={"evaluation_with_gradients": RULES["evaluation_with_gradients"]}
    )
    [evaluations] = told.findings
    assert evaluations.where.line == 4
    assert told.account is not None
    assert told.account.found_ms == 0
