"""The kinds of steps: by what only some of them run, or by two lengths."""

import pytest

from selftime.analysis.account.step_account import account_segments_of_kind, names_of_kinds
from selftime.analysis.steps.kinds_of_steps import kinds_of_steps
from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.account import account

MARKS = "\n".join(f"    {letter} = ProfilerStep#{n}" for n, letter in enumerate("uvwxyz", 1))
NAMES = f"""
    column = 1 ms
{MARKS}
    f = aten::mm; line = train.py:7 step
    b = autograd::engine::evaluate_function: MmBackward0
    o = Optimizer.step#SGD.step
    g = aten::embedding; line = generate.py:3 sample
"""
TRAINING = f"""
    mark 1 | uuuuuuvvvvvvwwwwwwxxxyyyyyyzzz
    cpu 1  | fffbbbfffbbbfffbbbffffffbbbfff
    mark 1 |      o     o     o        o
    {NAMES}
"""
"""Four steps of training, of which the first is left out, and two with a forward pass alone."""


def kinds(drawing: str) -> list[str | None]:
    return kinds_of_steps(sketch(drawing))["kind"].to_list()


def test_a_trace_without_steps_has_no_kinds() -> None:
    assert kinds_of_steps(Trace()).is_empty()
    assert account(Trace(), by="kind").is_empty()


def test_steps_that_are_alike_are_of_one_kind() -> None:
    drawing = f"mark 1 | uuuvvvwwwxxx\ncpu 1 | ff ff ff ff\n{NAMES}"
    assert kinds(drawing) == [None, "all", "all", "all"]


def test_a_backward_pass_tells_training_from_a_forward_pass() -> None:
    training, forward = "training", "forward only"
    assert kinds(TRAINING) == [None, training, training, forward, training, forward]


def test_a_step_without_the_optimizer_gathers_gradients() -> None:
    drawing = f"""
    mark 1 | uuuuvvvvwwwwxxxx
    cpu 1  | ffbbffbbffbbffbb
    mark 1 |        o       o
    {NAMES}
    """
    assert kinds(drawing) == [None, "training", "without optimizer", "training"]


def test_an_optimizer_that_begins_where_the_recording_of_a_step_ends_is_of_the_step() -> None:
    drawing = f"""
    mark 1 | uuuuvvvvwwww xxxx
    cpu 1  | ffbbffbbffbb ffbb
    mark 1 |    o   o    o   o
    {NAMES}
    """
    assert kinds(drawing) == [None, "all", "all", "all"]


def test_steps_that_run_other_operators_are_of_another_kind() -> None:
    drawing = f"""
    mark 1 | uuuvvvvvvvwwwxxxxxxxyyyzzzzzzz
    cpu 1  | ff gggggg ff gggggg ff gggggg
    {NAMES}
    """
    assert kinds(drawing) == [None, "long", "short", "long", "short", "long"]
    single = f"mark 1 | uuuvvvwwwxxxyyyzzzz\ncpu 1 | ff ff ff gg ff ff\n{NAMES}"
    assert set(kinds(single)[1:]) == {"all"}


@pytest.mark.parametrize(
    ("lengths", "told"),
    [
        ([4, 4, 9, 4, 9, 4, 9], ["short", "long", "short", "long", "short", "long"]),
        ([4, 4, 9, 4, 9, 4], ["all"] * 5),  # two may be long by chance
        ([4, 4, 5, 6, 7, 8, 9], ["all"] * 6),  # no gap
        ([4, 4, 4, 4, 9, 4, 4], ["all"] * 6),
    ],
)
def test_two_lengths_are_two_kinds(lengths: list[int], told: list[str]) -> None:
    letters = "uvwxyza"
    marks = "".join(letter * n for letter, n in zip(letters, lengths, strict=False))
    drawing = f"mark 1 | {marks}\ncpu 1 | {'f' * len(marks)}\n{NAMES}\na = ProfilerStep#7"
    assert kinds(drawing)[1:] == told


def test_each_kind_has_its_own_mean() -> None:
    trace = sketch(TRAINING)
    assert names_of_kinds(trace) == ["training", "forward only"]
    rows = account(trace, by="kind").select("kind", "class", "per_step", "time").rows()
    assert rows == [
        ("training", "compute", 6e6, 18_000_000),
        ("forward only", "compute", 3e6, 6_000_000),
    ]
    assert account(trace, kind="forward only")["per_step"].sum() == 3e6
    segments, count = account_segments_of_kind(trace, "training")
    assert (count, (segments["end"] - segments["start"]).sum()) == (3, 18_000_000)


def test_an_unknown_kind_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="there are `training`, `forward only`"):
        account(sketch(TRAINING), kind="evaluation")
