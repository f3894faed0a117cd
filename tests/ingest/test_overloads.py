import json
from pathlib import Path

import polars as pl

from selftime.ingest.load import load
from selftime.trace import Trace


def written(path: Path, *names: str, category: str = "cpu_op") -> Trace:
    events = [
        {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 1,
            "tid": 1,
            "ts": 10 * at,
            "dur": 5,
            "args": {"External id": at + 1},
        }
        for at, name in enumerate(names)
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


def test_an_overload_in_a_name_becomes_a_column(tmp_path: Path) -> None:
    trace = written(
        tmp_path / "t.json", "aten::select.int", "aten::relu", "aten::select", "mine::op.out_x"
    )

    assert trace.slices["name"].to_list() == [
        "aten::select",
        "aten::relu",
        "aten::select",
        "mine::op",
    ]
    assert trace.op_args["overload"].to_list() == ["int", None, None, "out_x"]
    assert trace.view("operators").filter(pl.col("name") == "aten::select")["count"].to_list() == [
        2
    ]


def test_other_dots_stay(tmp_path: Path) -> None:
    names = ["a.b.reducer::copy", "autograd::engine::evaluate_function: X.y", "plain.name"]
    trace = written(tmp_path / "t.json", *names)

    assert trace.slices["name"].to_list() == names
    assert trace.op_args["overload"].null_count() == 3


def test_annotations_keep_their_names(tmp_path: Path) -> None:
    trace = written(tmp_path / "t.json", "mine::part.two", category="user_annotation")

    assert trace.slices["name"].to_list() == ["mine::part.two"]
