"""Cells of a notebook have one name wherever a recording names their compiled code."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.ledgers import Step, ledger_text

import selftime
from selftime.advice import advise
from selftime.advice.rule_definition import Finding, Fix, Where
from selftime.ingest.ledger import read_ledger
from selftime.reports.page_data.snippets import source_snippet
from selftime.rewrite.private_data_removal import (
    PrivateTextReplacements,
    PrivateWordCollector,
    Redactor,
)
from selftime.trace import Trace

FOLDER = "/folder/ipykernel_7"
TRAIN, MODEL = f"{FOLDER}/25.py", f"{FOLDER}/31.py"
CELLS = {
    "file": [TRAIN, MODEL, "<timed exec>"],
    "cell": [5, 2, 6],
    "above": [0, 3, 1],
    "text": ["x = 1\nfor _ in range(9):\n    train(x)", "\n\n\ndef train(x):\n    x + x", None],
}
LINES = {
    "id": [1, 2],
    "file": [0, 1],
    "line": [3, 2],
    "function": [0, 1],
    "how": [0, 0],
    "files": [TRAIN, MODEL],
    "functions": ["<module>", "train"],
}


def event(name: str, start: float, duration: float, **args: Any) -> dict[str, Any]:
    category = "cpu_op" if "::" in name else "python_function"
    place = {"ph": "X", "pid": 1, "tid": 1, "ts": start, "dur": duration}
    return {**place, "cat": category, "name": name, "args": args}


def load(path: Path, facts: dict[str, Any] | None, *names: str) -> Trace:
    """Returns a trace of frames within each other around two operators."""
    depth = len(names)
    frames = [
        event(name, at, 100 - 2 * at, **{"Python id": at, "Python parent id": at - 1 or None})
        for at, name in enumerate(names, 1)
    ]
    ops = [
        event("aten::mul", depth + 1, 5, **{"External id": 1}),
        event("aten::add", depth + 9, 20, **{"External id": 2}),
    ]
    told = {} if facts is None else {"selftime": {"format": "selftime.facts/1", **facts}}
    path.write_text(json.dumps({"traceEvents": frames + ops, **told}), "utf-8")
    trace = selftime.load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


def places(trace: Trace) -> list[tuple[Any, ...]]:
    return trace.lines.select(pl.col("file").cast(pl.String), "line").unique().sort("file").rows()


def names_of_frames(trace: Trace) -> list[str]:
    return trace.slices.filter(pl.col("category") == "python_function")["name"].to_list()


def test_cells_have_their_number_and_lines_those_of_the_cell(tmp_path: Path) -> None:
    frames = (f"{TRAIN}(3): <module>", f"{MODEL}(1): train", "<timed exec>(1): <module>")
    trace = load(tmp_path / "a.json", {"cells": CELLS, "lines": LINES}, *frames)

    assert places(trace) == [("cell 2", 5), ("cell 5", 3)]
    assert names_of_frames(trace) == [
        "cell 5(3): <module>",
        "cell 2(4): train",
        "cell 6(2): <module>",
    ]
    table = trace.view("lines").drop_nulls("file")
    assert set(table["file"]) <= {"cell 2", "cell 5", "cell 6"}
    answer = json.loads(advise(trace).to_json())
    assert "ipykernel_" not in json.dumps(answer)


def test_facts_with_a_file_and_a_line_name_the_cell(tmp_path: Path) -> None:
    created = [{"kind": "loader", "class_name": "DataLoader", "file": MODEL, "line": 2}]
    workers = {"lines": {"files": [MODEL, "a.py"], "file": [0, 1], "line": [1, 1]}}
    facts = {"cells": CELLS, "created": created, "workers": workers}
    told = load(tmp_path / "a.json", facts).facts

    assert told["created"][0] | {"file": "cell 2", "line": 5} == told["created"][0]
    assert told["workers"]["lines"] == {"files": ["cell 2", "a.py"], "file": [0, 1], "line": [4, 1]}


def test_other_recordings_name_what_can_be_known(tmp_path: Path) -> None:
    numbered = "<ipython-input-3-0f1e2d3c4b5a>"
    trace = load(tmp_path / "a.json", None, f"{TRAIN}(8): <module>", f"{numbered}(2): train")
    assert names_of_frames(trace) == ["notebook cell (25.py)(8): <module>", "cell 3(2): train"]
    assert places(trace) == [("cell 3", 2)]

    other = "<ipython-input-3-a5b4c3d2e1f0>"
    both = load(tmp_path / "b.json", None, f"{other}(8): <module>", f"{numbered}(8): train")
    assert len(set(names_of_frames(both))) == 2, "two codes of one cell are not one"


def test_stacks_name_cells_too(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    stack = f"{TRAIN}(3): <module>;torch/a.py(1): f;{TRAIN}(1): g"
    op = event("aten::mul", 1, 5, **{"External id": 1, "Call stack": stack})
    path.write_text(json.dumps({"traceEvents": [op], "selftime": {"cells": CELLS}}), "utf-8")
    trace = selftime.load(path, cache=False)
    assert isinstance(trace, Trace)
    told = "cell 5(3): <module>;torch/a.py(1): f;cell 5(1): g"
    assert trace.op_args["call_stack"].to_list() == [told]


@pytest.mark.parametrize(
    "cells",
    [
        None,
        7,
        [],
        {"file": TRAIN},
        {"file": [TRAIN], "cell": [], "above": [], "text": []},
        {"file": [7], "cell": [1], "above": [0], "text": [None]},
        {"file": [TRAIN], "cell": ["5"], "above": [0], "text": [None]},
        {"file": [TRAIN], "cell": [True], "above": [0], "text": [None]},
        {"file": [TRAIN], "cell": [5], "above": [-1], "text": [None]},
        {"file": [TRAIN], "cell": [1 << 70], "above": [0], "text": [None]},
    ],
)
def test_what_is_no_cell_is_left_out(tmp_path: Path, cells: object) -> None:
    trace = load(tmp_path / "a.json", {"cells": cells, "lines": LINES}, f"{TRAIN}(3): <module>")
    assert names_of_frames(trace) == ["notebook cell (25.py)(3): <module>"]


def test_a_hostile_name_is_no_pattern(tmp_path: Path) -> None:
    odd = {"file": ["(.+)", "a.py"], "cell": [1, 2], "above": [0, 0], "text": [None, "x" * 9]}
    trace = load(tmp_path / "a.json", {"cells": odd}, "train.py(3): f", "xa.py(3): g")
    assert names_of_frames(trace) == ["train.py(3): f", "xa.py(3): g"]


def test_the_text_of_a_cell_is_its_source(tmp_path: Path) -> None:
    facts = {"cells": CELLS, "lines": LINES}
    trace = load(tmp_path / "a.json", facts, "<timed exec>(1): <module>")
    told = source_snippet(trace, "cell 2", 4, 9)
    assert told == {
        "file": "cell 2",
        "from": 4,
        "lines": ["def train(x):", "    x + x"],
        "count": 5,
    }
    assert source_snippet(trace, "cell 6", 1, 9) is None, "its text was not recorded"
    assert source_snippet(trace, TRAIN, 1, 9) is None


def test_what_is_written_again_reads_the_same(tmp_path: Path) -> None:
    frames = (f"{TRAIN}(3): <module>", f"{MODEL}(1): train")
    trace = load(tmp_path / "a.json", {"cells": CELLS, "lines": LINES}, *frames)
    trace.export(tmp_path / "b.json", to="chrome")
    again = selftime.load(tmp_path / "b.json", cache=False)
    assert isinstance(again, Trace)
    assert names_of_frames(again) == names_of_frames(trace)


def test_a_ledger_names_the_cells_of_its_lines() -> None:
    text = ledger_text([Step(5.0, line=2)] * 3).replace("/project/train.py", MODEL)
    run = read_ledger((text + json.dumps({"cells": CELLS}) + "\n").encode(), "a.run.jsonl")
    assert ("cell 2", 5) in run.readings.select("file", "line").rows()
    assert set(run.readings["file"]) == {"cell 2"}
    assert {file for file, _ in run.loop_lines.values()} == {"cell 2"}
    assert read_ledger(text.encode(), "a.run.jsonl").readings["file"][0] == "notebook cell (31.py)"


def test_a_kind_of_steps_is_named_after_the_cell_of_its_loop() -> None:
    lines = [json.loads(line) for line in ledger_text([Step(5.0)] * 3).splitlines()]
    for line in lines:
        if "name" in line:
            line["name"] = "iteration at 31.py:2, unusual"
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in [*lines, {"cells": CELLS}])
    run = read_ledger(f"{text}\n".encode(), "a.run.jsonl")
    assert "iteration at cell 2, line 5, unusual" in run.segments["kind"].to_list()


class Written:
    """What a redactor wrote."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.events = b""

    def receive_key(self, name: str, value: bytes) -> None:
        self.keys[name] = json.loads(value)

    def receive_events(self, text: bytes, _count: int) -> None:
        self.events += text


def test_a_redacted_trace_has_no_text_of_cells_and_names_them_all_the_same(tmp_path: Path) -> None:
    for hides_names in (False, True):
        written, hidden = Written(), PrivateTextReplacements()
        redactor = Redactor(written, hidden, PrivateWordCollector(), hides_names=hides_names)
        facts = {"cells": CELLS, "lines": LINES}
        redactor.receive_events(json.dumps(event(f"{TRAIN}(3): secret", 1, 9)).encode(), 1)
        redactor.receive_key("selftime", json.dumps(facts).encode())

        assert written.keys["selftime"]["cells"]["text"] == [None] * 3
        assert "train(x)" not in json.dumps(written.keys)
        assert hidden.counts["text of a notebook's cell"] == 2
        path = tmp_path / "a.json"
        path.write_text(
            json.dumps({"traceEvents": [json.loads(written.events)], **written.keys}), "utf-8"
        )
        trace = selftime.load(path, cache=False)
        assert isinstance(trace, Trace)
        assert names_of_frames(trace)[0].startswith("cell 5(3): ")


def test_the_answer_shows_the_line_of_a_cell(tmp_path: Path) -> None:
    trace = load(tmp_path / "a.json", {"cells": CELLS, "lines": LINES}, f"{TRAIN}(3): <module>")
    place = Where("cell 2", 5, "train", "stack")
    found = Finding(id="a-1", title="Slow", where=place, confidence="high", fix=Fix("Do less."))
    told = replace(advise(trace), findings=(found,))
    lines = [line.strip() for line in str(told).splitlines()]
    assert lines[lines.index("cell 2, line 5 in train") + 1] == "x + x"
