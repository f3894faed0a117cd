"""Folded stacks of a whole trace."""

from pathlib import Path

import pytest
from tests.reports.export.drawn import everything

from selftime.errors import UsageError
from selftime.reports.export import export
from selftime.testing import sketch
from selftime.trace import Trace

TRACE = """
    m = train.py(3): main
    a = aten::linear
    k = gemm
    python 1 | mmmmmmmmmm
    cpu 1    |  aaaa
    call 1   |   k
    gpu 7    |    kkkkkk
"""


def test_nothing_recorded_has_no_stacks(tmp_path: Path) -> None:
    export(Trace(), tmp_path / "a.folded", to="folded")
    assert (tmp_path / "a.folded").read_bytes() == b""


def test_stacks_have_the_hosts_own_nanoseconds(tmp_path: Path) -> None:
    told = export(sketch(TRACE), tmp_path / "a.folded", to="folded")
    assert (tmp_path / "a.folded").read_text().splitlines() == [
        "train.py(3):_main 60000",
        "train.py(3):_main;aten::linear 30000",
        "train.py(3):_main;aten::linear;gemm 10000",
    ]
    assert told.written == {"stacks": 3, "ns": 100_000}


def test_stacks_have_the_time_of_the_device_below_them(tmp_path: Path) -> None:
    export(sketch(TRACE), tmp_path / "a.folded", to="folded", weight="device")
    assert (tmp_path / "a.folded").read_text() == "train.py(3):_main;aten::linear;gemm 60000\n"


def test_a_stack_is_a_line_whatever_names_hold(tmp_path: Path) -> None:
    export(everything(tmp_path / "trace.json"), tmp_path / "a.folded", to="folded")
    for line in (tmp_path / "a.folded").read_text().splitlines():
        stack, _, own = line.rpartition(" ")
        assert all(stack.split(";"))
        assert int(own) > 0


def test_views_are_not_of_stacks(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="`views` is no option of `folded`, only of parquet and csv"
    ):
        export(Trace(), tmp_path / "a", to="folded", views=("steps",))
