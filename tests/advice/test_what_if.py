"""Changes that a user names: what they match, and what the step takes after them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import selftime
from selftime.advice.what_if import CLASSES_TO_REMOVE, WhatIf
from selftime.advice.what_if.matched_names import MAX_MATCHED_NAMES
from selftime.errors import UnreadableTrace, UsageError
from selftime.testing import sketch
from selftime.trace import Trace

FOLDER: Final = Path(
    os.environ.get("SELFTIME_TRACES", Path(__file__).parents[3] / "shared" / "traces")
)
REAL_TRACES: Final = sorted(path.name for path in FOLDER.glob("*.json.gz"))

KNOWN: Final = 'facts = {"overhead": {"ratio": 1.0}}'
STEPS: Final = """
    column = 1 ms
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
"""
LOADED: Final = f"""
    {STEPS}
    {KNOWN}
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | dddd        dddd        dddd
    cpu 1  |     aab         aab         aab
    call 1 |     k m         k m         k m
    gpu 7  |     qqqqmm      qqqqmm      qqqqmm
    q = void conv_kernel<float>(); launched_by = k
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    a = aten::conv2d; line = net.py:31 forward
    b = aten::mm; line = net.py:32 forward
"""
"""Steps of 12 ms: 4 of loading, 4 in `q` of `aten::conv2d`, 2 in `m` of `aten::mm`, 2 idle."""
ON_CPU: Final = f"""
    {STEPS}
    {KNOWN}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaabbbbaaaaaabbbbaaaaaabbbb
    a = aten::conv2d
    b = aten::mm
"""
WAITING: Final = f"""
    {STEPS}
    {KNOWN}
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    call 1 | kwwwww      kwwwww      kwwwww
    gpu 7  |  kkkkk       kkkkk       kkkkk
    w = cudaStreamSynchronize
"""
COMMUNICATING: Final = f"""
    {STEPS}
    {KNOWN}
    mark 1 | sssssssssssstttttttttttt
    call 1 | kc          kc
    call 1 |   wwwwwwwww   wwwwwwwww
    gpu 7  |  kkk         kkk
    gpu 20 |     ccccccc     ccccccc
    w = cudaDeviceSynchronize
    c = ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)
"""


def predicted(drawing: str, **changes: Any) -> WhatIf:
    return selftime.what_if(sketch(drawing), **changes)


def test_time_that_nothing_hides_is_saved_whole() -> None:
    found = predicted(LOADED, remove=["data"])
    assert (found.step_ms, found.predicted_ms) == (12.0, 8.0)
    assert found.saving.speedup == 1.5
    assert found.basis == "unrecorded"
    assert found.predicted_low_ms <= found.predicted_ms <= found.predicted_high_ms


def test_an_operator_takes_its_kernels_along_and_a_kernel_comes_alone() -> None:
    operator = predicted(LOADED, scale={"aten::conv*": 0.5})
    kernel = predicted(LOADED, scale={"conv_kernel*": 0.5})
    assert [(one.host_ms, one.device_ms) for one in operator.changes] == [(2.0, 4.0)]
    assert [(one.host_ms, one.device_ms) for one in kernel.changes] == [(0.0, 4.0)]
    assert (kernel.saving.estimate_ms or 0) <= (operator.saving.estimate_ms or 0)


def test_faster_kernels_shorten_a_step_that_the_device_bounds() -> None:
    drawing = f"""
    {STEPS}
    {KNOWN}
    mark 1 | ssssttttuuuu
    call 1 | k   m   n
    gpu 7  |  kkkkkkkkkkmmmmmmmmmmnnnnnnnnnn
    """
    found = predicted(drawing, scale={"[kmn]": 0.5})
    assert found.bound_by == "device-bound"
    assert found.predicted_ms == pytest.approx(found.step_ms / 2, rel=0.05)


def test_a_source_line_takes_its_operators_and_their_kernels() -> None:
    by_line = predicted(LOADED, scale={"net.py:31": 0.5})
    by_name = predicted(LOADED, scale={"aten::conv2d": 0.5})
    assert by_line.predicted_ms == by_name.predicted_ms
    assert by_line.changes[0].device_ms == 4.0


def test_all_changes_are_one_simulation() -> None:
    one, other = predicted(LOADED, remove=["data"]), predicted(LOADED, remove=["aten::conv2d"])
    both = predicted(LOADED, remove=["data", "aten::conv2d"])
    alone = [found.saving.estimate_ms or 0.0 for found in (one, other)]
    assert max(alone) <= (both.saving.estimate_ms or 0.0) <= sum(alone)
    assert [change.pattern for change in both.changes] == ["data", "aten::conv2d"]


def test_host_time_beside_the_loop_saves_nothing() -> None:
    beside = f"{ON_CPU}    cpu 2  | cccccccccccccccccccccccccccccc\n    c = aten::sort\n"
    found = predicted(beside, remove=["aten::sort"])
    assert found.changes[0].names[0].ms == 10.0
    assert (found.changes[0].host_ms, found.saving.estimate_ms) == (0.0, 0.0)
    assert predicted(beside, remove=["aten::mm"]).predicted_ms == 6.0


def test_waits_go_with_their_class_and_with_what_they_lie_in() -> None:
    named = predicted(WAITING, remove=["syncs"])
    by_call = predicted(WAITING, remove=["cudaStream*"])
    assert (named.saving.estimate_ms or 0.0) > 0
    assert (by_call.saving.estimate_ms or 0.0) >= (named.saving.estimate_ms or 0.0)
    assert named.changes[0].host_ms == 5.0
    scaled = predicted(WAITING, scale={"cudaStream*": 0.01})
    assert (scaled.saving.estimate_ms or 0.0) < (named.saving.estimate_ms or 0.0)


def test_hidden_communication_still_takes_its_time() -> None:
    hidden, removed = (
        predicted(COMMUNICATING, **{how: ["communication"]}) for how in ("hide", "remove")
    )
    assert removed.predicted_ms < hidden.predicted_ms < hidden.step_ms
    assert hidden.predicted_ms == 7.0
    halved = predicted(COMMUNICATING, hide=["communication"], scale={"communication": 0.5})
    assert removed.predicted_ms <= halved.predicted_ms < hidden.predicted_ms


def test_what_bounds_the_step_changes_with_it() -> None:
    found = predicted(LOADED, remove=["data"], scale={"aten::mm": 0.0})
    assert found.bound_by == selftime.advise(sketch(LOADED)).step.regime
    assert predicted(LOADED, remove=["conv_*", "m"]).bound_by_after == "host-only"
    busy = predicted(WAITING, remove=["syncs"])
    assert (busy.bound_by, busy.bound_by_after) != (None, None)


def test_the_saving_is_of_a_step_without_profiler() -> None:
    twice = ON_CPU.replace('"ratio": 1.0', '"ratio": 2.0')
    found = predicted(twice, scale={"aten::mm": 0.5})
    assert (found.step_ms, found.predicted_ms) == (5.0, 4.0)
    unknown = predicted(ON_CPU.replace(KNOWN, ""), scale={"aten::mm": 0.5})
    assert (unknown.basis, unknown.step_ms, unknown.predicted_ms) == ("recorded", 10.0, 8.0)


def test_host_time_saves_no_more_than_the_step_has_beyond_the_device() -> None:
    drawing = f"""
    {STEPS}
    {KNOWN}
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | dddddddddd  dddddddddd  dddddddddd
    call 1 |           k           k           k
    gpu 7  |           kkkkkkkkkkkkkkkkkkkkkkkkk
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    """
    found = predicted(drawing, remove=["data"])
    busy = sketch(drawing).view("steps").filter("counted")["busy"].mean()
    assert isinstance(busy, float)
    assert found.predicted_ms >= min(found.step_ms, busy / 1e6) - 1e-6


@pytest.mark.parametrize("drawing", [LOADED, ON_CPU, WAITING, COMMUNICATING])
def test_a_change_to_the_same_time_saves_nothing(drawing: str) -> None:
    found = predicted(drawing, scale={"*": 1.0})
    assert found.saving.estimate_ms == 0
    assert found.predicted_ms == found.predicted_low_ms == found.predicted_high_ms == found.step_ms
    assert found.bound_by_after == found.bound_by


def test_removing_everything_leaves_nothing_of_a_step_that_operators_fill() -> None:
    found = predicted(ON_CPU, remove=["*"])
    assert found.predicted_ms == 0
    assert found.saving.speedup is None


@given(shares=st.lists(st.integers(0, 20), min_size=2, max_size=2, unique=True))
@pytest.mark.parametrize("pattern", ["*", "aten::conv2d", "conv_kernel", "data"])
@pytest.mark.parametrize("drawing", [LOADED])
def test_the_less_is_left_the_shorter_the_step(
    drawing: str, pattern: str, shares: list[int]
) -> None:
    less, more = (
        predicted(drawing, scale={pattern: share / 20}).predicted_ms for share in sorted(shares)
    )
    assert less <= more + 1e-6


def test_a_pattern_without_a_match_names_what_is_nearest() -> None:
    with pytest.raises(UsageError, match=r"named `aten::cnv\*`; .*`aten::conv2d`"):
        predicted(LOADED, scale={"aten::cnv*": 0.5})
    with pytest.raises(UsageError, match=r"line 30 of `net.py`; the nearest lines of it are 31"):
        predicted(LOADED, remove=["net.py:30"])
    with pytest.raises(UsageError, match=r"line 1 of `other.py`; known are lines of `net.py`"):
        predicted(LOADED, remove=["other.py:1"])


@pytest.mark.parametrize("name", CLASSES_TO_REMOVE)
def test_a_class_that_holds_nothing_is_an_error(name: str) -> None:
    with pytest.raises(UsageError, match=f"`{name}` holds nothing to change"):
        predicted(ON_CPU, remove=[name])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "there is no change to predict"),
        ({"scale": {"a": 1.5}}, "the factor of `a` is 1.5"),
        ({"scale": {"a": float("nan")}}, "the factor of `a` is nan"),
        ({"scale": {"syncs": 0.5}}, "`syncs` cannot be scaled"),
        ({"hide": ["data"]}, "`data` cannot be hidden"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        predicted(LOADED, **changes)


def test_a_trace_without_steps_of_known_duration_cannot_be_simulated() -> None:
    with pytest.raises(UnreadableTrace):
        predicted("mark 1 |", scale={"*": 0.5})


def test_the_same_question_has_the_same_answer_as_json() -> None:
    texts = [predicted(LOADED, remove="data").to_json() for _ in range(2)]
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["traces"][0]["predicted_ms"] == 8.0


def test_only_the_longest_names_are_told() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    lane = "".join(letters)
    legend = "\n".join(f"{letter} = aten::op_{letter}" for letter in letters if letter != "s")
    drawing = f"column = 1 ms\nmark 1 | {'S' * 26}\ncpu 1 | {lane}\nS = ProfilerStep#1\n{legend}"
    [change] = predicted(drawing, scale={"*": 0.5}).changes
    assert change.name_count == len(letters)
    assert len(change.names) == MAX_MATCHED_NAMES


def prediction_if_any(trace: Trace, changes: dict[str, Any]) -> WhatIf | None:
    """The prediction; None if the trace holds nothing of the class that is changed.

    None as well if it holds no whole step.
    """
    try:
        return selftime.what_if(trace, **changes)
    except UsageError as error:
        if "holds nothing to change" not in str(error):
            raise
        return None
    except UnreadableTrace as error:
        is_partial = not selftime.advise(trace, rules={}).step.count
        if not is_partial or "no step whose duration is known" not in str(error):
            raise
        return None


def changes_of(trace: Trace) -> Iterator[tuple[dict[str, Any], WhatIf]]:
    """Yields each kind of change that the trace has something for, with its prediction."""
    asked: list[dict[str, Any]] = [{"remove": [name]} for name in CLASSES_TO_REMOVE]
    asked += [{"scale": {"*": share}} for share in (1.0, 0.5, 0.0)]
    asked += [{"hide": ["communication"]}]
    for changes in asked:
        found = prediction_if_any(trace, changes)
        if found is not None:
            yield changes, found


@pytest.mark.traces
@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", REAL_TRACES)
def test_real_steps_stay_between_their_floor_and_what_they_were(name: str) -> None:
    trace = selftime.load(str(FOLDER / name))
    assert isinstance(trace, Trace)
    regime = selftime.advise(trace, rules={}).step.regime
    for changes, found in changes_of(trace):
        bounds = [found.predicted_low_ms, found.predicted_ms, found.predicted_high_ms]
        assert bounds == sorted(bounds), changes
        assert bounds[0] >= 0
        assert bounds[-1] <= found.step_ms * (1 + 1e-9)
        if changes == {"scale": {"*": 1.0}}:
            assert found.predicted_ms == found.step_ms
            assert found.bound_by_after == found.bound_by == regime
