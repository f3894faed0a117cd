"""The executing line, where the source is at hand and only one line can have run the operator."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from selftime.advice import Evidence, Finding, Fix, Saving, Where
from selftime.advice.lines.line_from_source import with_line_from_source
from selftime.advice.rule_definition import LineEvidence
from selftime.testing import sketch
from selftime.trace import Trace

SOURCE = """\
import torch


@torch.no_grad()
def loss(
    pred, target,
):
    mask = target > 0
    kept = pred[mask]
    if kept.sum() > 3:
        kept = kept * 2
    count = torch.unique(
        kept
    )
    return kept.mean().item() + count.numel()


twice = [x.item() for x in torch.arange(2)]
total = sum(map(lambda t: t.item(), torch.arange(3)))
"""


def recorded(
    folder: Path, operator: str, *between: str, function: str = "loss", line: int = 4
) -> Trace:
    """An operator in the user's function, with frames of others between them."""
    (folder / "train.py").write_text(SOURCE)
    frames = dict(zip("fghij", (f"train.py({line}): {function}", *between), strict=False))
    lanes = "\n".join(f"python 1 | {letter * 8}" for letter in frames)
    legend = "\n".join(f"{letter} = {text}" for letter, text in frames.items())
    trace = sketch(f"{lanes}\ncpu 1    | oooooooo\n{legend}\no = {operator}")
    return replace(trace, source=str(folder / "trace.json"))


def finding(
    trace: Trace, function: str = "loss", line: int | None = 4, how: LineEvidence = "definition"
) -> Finding:
    [operator] = trace.op_args["id"].to_list()
    return Finding(
        title="It waits",
        where=Where("train.py", line, function, how),
        saving=Saving(),
        confidence="low",
        evidence=(Evidence("waits", 1.0, "count", (operator,)),),
        fix=Fix("Do not wait."),
    )


@pytest.mark.parametrize(
    ("operator", "between", "line"),
    [
        ("aten::index", (), 9),
        ("aten::is_nonzero", (), 10),
        ("aten::mul", (), 11),
        ("aten::_unique2", ("torch/functional.py(900): unique",), 12),
        ("aten::item", ("<built-in method item of Tensor object at 0x7f>",), 15),
        ("aten::mean", ("<built-in method mean of Tensor object at 0x7f>",), 15),
    ],
)
def test_the_one_line_that_can_have_run_it(
    tmp_path: Path, operator: str, between: tuple[str, ...], line: int
) -> None:
    trace = recorded(tmp_path, operator, *between)
    told = with_line_from_source(trace, finding(trace))
    assert (told.where.line, told.where.how) == (line, "static")


@pytest.mark.parametrize(
    ("function", "line", "found"), [("<listcomp>", 18, 18), ("<lambda>", 19, 19)]
)
def test_code_without_a_name_has_lines_too(
    tmp_path: Path, function: str, line: int, found: int
) -> None:
    trace = recorded(
        tmp_path,
        "aten::item",
        "<built-in method item of Tensor object>",
        function=function,
        line=line,
    )
    told = with_line_from_source(trace, finding(trace, function, line))
    assert (told.where.line, told.where.how) == (found, "static")


def test_several_candidates_are_named_and_none_is_chosen(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "aten::gt")
    told = with_line_from_source(trace, finding(trace))
    assert told.where == finding(trace).where
    assert told.evidence[-1].metric == "source lines that may have run it: 8 or 10 of `train.py`"


def test_a_file_that_changed_since_tells_nothing(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "aten::index", line=5)
    assert with_line_from_source(trace, finding(trace, line=5)).where.line == 9
    trace = recorded(tmp_path, "aten::index", line=40)
    told = finding(trace, line=40)
    assert with_line_from_source(trace, told) == told


@pytest.mark.parametrize("content", ["def loss(:\n", "\0", ""])
def test_a_file_that_cannot_be_parsed_tells_nothing(tmp_path: Path, content: str) -> None:
    trace = recorded(tmp_path, "aten::index")
    (tmp_path / "train.py").write_text(content)
    assert with_line_from_source(trace, finding(trace)) == finding(trace)


LOOP = """\
import numpy as np
import torch


def train(data, labels, batch):
    times = []
    head = data[labels]
    print("begin")
    for start in range(0, 100, batch):
        order = labels[start : start + batch]
        x = data[order]
        y = x[0] - 1
        print(x)
    print("end", np.mean(times[5:]))
"""


def in_a_loop(folder: Path, line: int, operator: str, between: str = "") -> Trace:
    """The frame of `train`, by the line that it shows, and what it runs, three times."""
    file = folder / "train.py"
    file.write_text(LOOP)
    called = f"python 1 | p p p p p\np = {between}\n" if between else ""
    trace = sketch(f"""
        python 1 | ffffffffff
        {called.replace(chr(10), chr(10) + " " * 8).rstrip()}
        cpu 1    | o o o o o
        f = train.py({line}): train
        o = {operator}
    """)
    return replace(trace, source=str(folder / "trace.json"))


def shown(trace: Trace, line: int, file: str = "train.py") -> Finding:
    event = max(trace.op_args["id"].to_list())
    place = Where(file, line, "train", "definition")
    return Finding(
        title="It waits",
        where=place,
        saving=Saving(),
        confidence="low",
        evidence=(Evidence("waits", 1.0, "count", (event,)),),
        fix=Fix("Do not wait."),
    )


def test_a_frame_that_was_open_at_the_begin_shows_a_line_within_its_function(
    tmp_path: Path,
) -> None:
    trace = in_a_loop(tmp_path, 11, "aten::sub")
    told = with_line_from_source(trace, shown(trace, 11))
    assert (told.where.line, told.where.how) == (12, "static")
    trace = in_a_loop(tmp_path, 11, "aten::relu")
    told = with_line_from_source(trace, shown(trace, 11))
    assert (told.where.line, told.where.how) == (5, "definition")


def test_what_runs_often_in_a_frame_is_in_a_loop(tmp_path: Path) -> None:
    """Outside of the loop two lines print, and five prints are more than they can be."""
    trace = in_a_loop(tmp_path, 5, "aten::relu", "<built-in function print>")
    told = with_line_from_source(trace, shown(trace, 5))
    assert (told.where.line, told.where.how) == (13, "static")


def test_a_range_is_no_index(tmp_path: Path) -> None:
    trace = in_a_loop(tmp_path, 5, "aten::index")
    told = with_line_from_source(trace, shown(trace, 5))
    assert told.evidence[-1].metric == "source lines that may have run it: 7 or 11 of `train.py`"


def test_a_file_has_a_long_name_and_a_short_one(tmp_path: Path) -> None:
    trace = in_a_loop(tmp_path, 5, "aten::sub")
    told = with_line_from_source(trace, shown(trace, 5, str(tmp_path / "train.py")))
    assert (told.where.line, told.where.how) == (12, "static")


def test_a_line_that_is_known_stays(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "aten::index")
    known = finding(trace, line=13, how="stack")
    assert with_line_from_source(trace, known) == known


@pytest.mark.parametrize("wrapper", ["torch/_compile.py(42): inner", "torch/functional.py(9): f"])
def test_a_frame_can_be_the_evidence(tmp_path: Path, wrapper: str) -> None:
    """The function that the program named is the first below its own that is no decorator's."""
    unique = "torch/functional.py(900): unique"
    trace = recorded(tmp_path, "aten::_unique2", wrapper, unique)
    [frame] = trace.frame_args["id"].to_list()[-1:]
    shown = replace(finding(trace), evidence=(Evidence("calls", 1.0, "count", (frame,)),))
    told = with_line_from_source(trace, shown)
    assert (told.where.line, told.where.how) == (
        (12, "static") if "inner" in wrapper else (4, "definition")
    )


def test_operators_tell_where_the_file_of_a_frame_lies(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "aten::index")
    [operator] = trace.op_args["id"].to_list()
    lines = sketch(f"cpu 1 | o\no = a; line = {tmp_path}/train.py:9 loss").lines
    elsewhere = replace(trace, source="elsewhere/trace.json")
    assert with_line_from_source(elsewhere, finding(trace)).where.how == "definition"
    told = replace(elsewhere, lines=lines.with_columns(id=pl.lit(operator, pl.UInt32)))
    assert with_line_from_source(told, finding(trace)).where.line == 9
