"""Lines of operators that a frame calls directly, learned from one step under line marks."""

import gc
import importlib
import inspect
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

pytest.importorskip("torch")
import torch

from selftime.capture import Profile
from selftime.capture.lines.line_marker import LineMarker
from selftime.capture.lines.sources import SourceFiles

pytestmark = pytest.mark.torch

SOURCE = Path(__file__).read_text().splitlines()
HOW = ("stack", "definition", "stamp")

Lines: TypeAlias = dict[str, list[tuple[int, str]]]


def line(mark: str) -> int:
    """The number of the line that bears the mark."""
    (number,) = [at for at, text in enumerate(SOURCE, 1) if text.endswith(f"# line: {mark}")]
    return number


def lines_of(profile: Profile) -> Lines:
    """Line and how it is known, by operator name in order."""
    block = profile.facts()["lines"]
    told = dict(zip(block["id"], zip(block["line"], block["how"], strict=True), strict=True))
    found: Lines = {}
    for event in sorted(profile.recorded_events(), key=lambda event: event.start_ns()):
        at = None if event.is_python_function() else told.get(event.correlation_id())
        if at is not None:
            found.setdefault(event.name(), []).append((at[0], HOW[at[1]]))
    return found


def recorded(work: Callable[[], object], *, marked: Callable[[], object] | None = None) -> Lines:
    """The lines of a recording of `work`, with those of another run of it under line marks."""
    with Profile(with_stack=True) as profile:
        work()
    marker = LineMarker(SourceFiles)
    assert marker.begin_marking()
    (marked or work)()
    marker.end_marking()
    profile.marked_lines = pickle.loads(pickle.dumps(marker.marks))  # noqa: S301 - our own
    return lines_of(profile)


def slots(rows: Any, mask: Any, truth: Any) -> Any:
    chosen = rows[mask]  # line: index
    total = (
        chosen  # line: several lines
        + 1.5
    )
    if truth:  # line: truth
        total = -total  # line: neg
    rows[0] = 2.0  # line: set
    ratio = float(truth)  # line: float
    return rows.T @ rows / ratio  # line: product


def test_slots_have_the_line_that_was_executing() -> None:
    rows = torch.randn(4, 4)
    mask, truth = rows > 0, torch.ones(())

    found = recorded(lambda: slots(rows, mask, truth))

    assert found["aten::index"] == [(line("index"), "stamp")]
    assert set(found["aten::nonzero"]) == {(line("index"), "stamp")}
    assert found["aten::add"] == [(line("several lines"), "stamp")]
    assert found["aten::is_nonzero"] == [(line("truth"), "stamp")]
    assert found["aten::neg"] == [(line("neg"), "stamp")]
    assert found["aten::fill_"][-1] == (line("set"), "stamp")
    assert found["aten::item"] == [(line("truth"), "stamp"), (line("float"), "stamp")]
    assert found["aten::numpy_T"] == [(line("product"), "stamp")]
    assert found["aten::matmul"] == [(line("product"), "stamp")]
    assert found["aten::div"] == [(line("product"), "stamp")]


class Rows:
    """Holds rows, as a data set does."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __getitem__(self, at: int) -> Any:
        return self.rows[at] * 2  # line: getitem

    @property
    def scaled(self) -> Any:
        return self.rows / 3  # line: property

    def each(self) -> Iterator[Any]:
        for row in self.rows.unbind():
            yield row - 1  # line: generator


def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
    def around(rows: Any) -> Any:
        return function(rows) + 7  # line: decorator

    return around


@doubled
def decorated(rows: Any) -> Any:
    return rows != 2  # line: decorated


def test_every_kind_of_frame_has_its_lines() -> None:
    data = Rows(torch.ones(3, 4))

    def work() -> None:
        negated = [-row for row in data.each()]  # line: comprehension
        smaller = max([data.scaled], key=lambda rows: (rows < 1).any())  # line: lambda

        def nested(rows: Any) -> Any:
            return rows | rows  # line: nested

        nested(smaller > 0)
        decorated(data[1])
        assert len(negated) == 3

    found = recorded(work)

    assert found["aten::neg"] == [(line("comprehension"), "stamp")] * 3
    assert found["aten::sub"] == [(line("generator"), "stamp")] * 3
    assert found["aten::lt"] == [(line("lambda"), "stamp")]
    assert found["aten::div"] == [(line("property"), "stamp")]
    assert found["aten::__or__"] == [(line("nested"), "stamp")]
    assert found["aten::mul"] == [(line("getitem"), "stamp")]
    assert found["aten::ne"] == [(line("decorated"), "stamp")]
    assert found["aten::add"] == [(line("decorator"), "stamp")]


def test_operators_within_an_annotation_have_their_own_line() -> None:
    rows = torch.ones(4)

    def work() -> None:
        with torch.profiler.record_function("mine"):  # line: annotation
            rows * 3  # line: annotated

    found = recorded(work)

    assert found["aten::mul"] == [(line("annotated"), "stamp")]
    assert found["mine"] == [(line("annotation"), "stack")]


def test_backward_of_a_slot_has_its_line() -> None:
    rows = torch.ones(4, requires_grad=True)

    def work() -> None:
        scaled = rows * rows  # line: forward slot
        scaled.sum().backward()  # type: ignore[no-untyped-call]  # torch

    found = recorded(work)

    assert found["MulBackward0"] == [(line("forward slot"), "stamp")]
    assert set(found["aten::mul"]) == {(line("forward slot"), "stamp")}


def branching(rows: Any, taken: int) -> Any:
    rows = rows * 2  # line: before the branch
    if taken == 0:
        rows = rows + 1  # line: first branch
    elif taken == 1:
        rows = rows + 2
    return rows - 3  # line: after the branch


def test_a_branch_that_was_not_marked_is_not_guessed() -> None:
    rows = torch.ones(4)

    def every() -> None:
        branching(rows, 0)
        branching(rows, 1)

    found = recorded(every, marked=lambda: branching(rows, 0))

    assert {how for _, how in found["aten::add"]} == {"definition"}
    assert found["aten::mul"] == [(line("before the branch"), "stamp")] * 2
    assert found["aten::sub"] == [(line("after the branch"), "stamp")] * 2
    assert {how for _, how in recorded(every)["aten::add"]} == {"definition"}


def looping(rows: Any, times: int) -> Any:
    for _ in range(times):
        rows = rows * 0.5  # line: in the loop
    return rows


def test_a_loop_may_run_another_number_of_times() -> None:
    rows = torch.ones(4)

    found = recorded(lambda: looping(rows, 5), marked=lambda: looping(rows, 2))

    assert found["aten::mul"] == [(line("in the loop"), "stamp")] * 5


def test_a_loop_that_ran_before_and_runs_on_has_its_lines() -> None:
    rows = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([rows], lr=0.1)
    profile, marker = Profile(with_stack=True), LineMarker(SourceFiles)
    for step in range(6):
        loss = (rows * 3).sum()  # line: in the open loop
        loss.backward()  # type: ignore[no-untyped-call]  # torch
        optimizer.step()
        if step == 0:
            profile.start()
        elif step == 3:
            profile.stop()
            marker.begin_marking()
        elif step == 4:
            marker.end_marking()
    profile.marked_lines = marker.marks

    found = lines_of(profile)["aten::mul"]

    assert set(found) == {(line("in the open loop"), "stamp")}


def test_a_program_that_traces_itself_is_left_alone() -> None:
    def own(frame: Any, event: str, argument: Any) -> Any:
        del frame, event, argument

    before = sys.gettrace()
    sys.settrace(own)
    try:
        marker = LineMarker(SourceFiles)
        began = marker.begin_marking()
        marker.end_marking()
        assert (began, marker.marks, sys.gettrace()) == (False, None, own)
    finally:
        sys.settrace(before)


def test_what_records_already_is_left_alone() -> None:
    marker = LineMarker(SourceFiles)
    with Profile():
        assert not marker.begin_marking()
        marker.end_marking()
    assert marker.marks is None


def test_nothing_is_left_when_it_is_done() -> None:
    rows = torch.ones(4)
    marker = LineMarker(SourceFiles)
    marker.begin_marking()
    values = (row * 2 for row in rows.unbind())
    next(values)
    marker.end_marking()

    assert sys.gettrace() is None
    assert sys._getframe().f_trace is None
    assert marker.marks is not None
    assert [float(value) for value in values] == [2.0, 2.0, 2.0]


def test_an_error_of_the_program_stays_its_own() -> None:
    rows = torch.ones(4)
    marker = LineMarker(SourceFiles)
    marker.begin_marking()
    with pytest.raises(RuntimeError, match="size"):
        rows + torch.ones(3)
    marker.end_marking()

    assert marker.marks is not None


def test_a_step_of_very_many_lines_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("selftime.capture.lines.line_marker.MAX_LINE_MARKS_PER_STEP", 50)
    rows = torch.ones(4)
    marker = LineMarker(SourceFiles)
    marker.begin_marking()
    looping(rows, 100)
    marker.end_marking()

    assert marker.marks is None
    assert sys.gettrace() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_leaves_no_marks() -> None:
    marker = LineMarker(SourceFiles)
    marker.begin_marking()
    child = os.fork()
    if child == 0:
        looping(torch.ones(4), 2)
        os._exit(0 if sys.gettrace() is None else 1)
    _, status = os.waitpid(child, 0)
    marker.end_marking()
    gc.collect()

    assert os.waitstatus_to_exitcode(status) == 0


def test_every_line_of_the_masked_loss_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(__file__).parents[3] / "examples" / "segmentation"
    monkeypatch.syspath_prepend(folder)
    example = importlib.import_module("masked_loss")
    source = (folder / "masked_loss.py").read_text().splitlines()
    images, labels = importlib.import_module("scenes").draw(2, 16)
    network, loss = example.PixelNet(), example.MaskedLoss()

    found = recorded(lambda: loss(network(images), labels).backward())

    def told(name: str) -> dict[str, str]:
        return {source[at - 1].strip(): how for at, how in found[name]}

    background = "background = torch.nonzero(labels == BACKGROUND, as_tuple=True)"
    chosen = "loss = self.loss(outputs.permute(0, 2, 3, 1)[counts], labels[counts])"
    assert told("aten::eq")[background] == "stamp"
    assert told("aten::index_put_") == {"labels[background] = IGNORED": "stamp"}
    assert told("aten::ne") == {"counts = labels != IGNORED": "stamp"}
    assert told("aten::index") == {chosen: "stamp"}
    assert told("IndexBackward0") == {chosen: "stamp"}
    assert "definition" not in {how for places in found.values() for _, how in places}


def test_compiled_code_is_not_made_anew_under_marks() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(looping, backend="eager", dynamic=False)
    rows = torch.ones(4)
    compiled(rows, 2)
    made = torch._dynamo.utils.counters["stats"]["unique_graphs"]

    found = recorded(lambda: compiled(rows, 2) + 1)

    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == made
    assert set(found["aten::mul"]) == {(inspect.getsourcelines(looping)[1], "definition")}
