"""Formulas against PyTorch's own counts, and against counting by hand."""

from typing import Any

import polars as pl
import pytest

import selftime
from selftime.analysis.models.operator_flops import operator_flop_count, recorded_or_modelled_flops
from selftime.testing import sketch


@pytest.mark.torch
def test_formulas_give_what_torch_counts() -> None:
    torch: Any = pytest.importorskip("torch")
    functional = torch.nn.functional
    image, kernel = torch.randn(2, 4, 9, 9), torch.randn(6, 2, 3, 3)
    with selftime.profile(with_flops=True) as prof:
        functional.conv2d(image, kernel, stride=(2, 1), padding=(1, 0), groups=2)
        functional.conv2d(image, torch.randn(6, 4, 3, 5), dilation=2)
        torch.nn.Linear(8, 3)(torch.randn(5, 8)).sum().backward()
        torch.bmm(torch.randn(3, 4, 5), torch.randn(3, 5, 6))
        torch.baddbmm(torch.randn(3, 4, 6), torch.randn(3, 4, 5), torch.randn(3, 5, 6))
        torch.mm(torch.randn(3, 4), torch.randn(4, 9)) * 2.0 + torch.randn(9)
    trace = prof.trace()
    told = trace.op_args.join(trace.slices.select("id", "name"), on="id").filter(
        pl.col("flops").fill_null(0) > 0
    )
    texts = told.select("name", "input_shapes", "concrete_inputs").cast(pl.String)
    assert [operator_flop_count(*row) for row in texts.iter_rows()] == told["flops"].to_list()
    assert set(texts["name"]) == {
        "aten::conv2d",
        "aten::addmm",
        "aten::mm",
        "aten::bmm",
        "aten::baddbmm",
        "aten::mul",
        "aten::add",
    }


def test_a_convolution_by_hand() -> None:
    """One image of 3x3, one kernel of 2x2: four places, four multiply-adds each."""
    inputs = '["","","","[1, 1]","[0, 0]","[1, 1]","1"]'
    assert operator_flop_count("aten::conv2d", "[[1,1,3,3],[1,1,2,2],[]]", inputs) == 2 * 4 * 4


@pytest.mark.parametrize(
    ("name", "shapes", "inputs"),
    [
        ("aten::relu", "[[4]]", None),
        ("aten::mm", None, None),
        ("aten::mm", "[]", None),
        ("aten::mm", "[[],[]]", None),
        ("aten::mm", "[[4,", None),
        ("aten::conv2d", "[[1,1,3,3],[1,1,2,2]]", None),
        ("aten::conv2d", "[[1,1,3,3],[1,1,2,2]]", '["","","","[0, 0]","[0, 0]","[1, 1]"]'),
    ],
)
def test_what_has_no_formula_or_no_shapes_has_no_count(
    name: str, shapes: str | None, inputs: str | None
) -> None:
    assert operator_flop_count(name, shapes, inputs) is None


def test_a_trace_without_counts_gets_them_from_shapes() -> None:
    trace = sketch("""
        cpu 1 | a b
        a = aten::mm; input_shapes = [[2,3],[3,4]]
        b = aten::relu; input_shapes = [[2,4]]
    """)
    assert recorded_or_modelled_flops(
        trace, trace.slices["name"], trace.slices["id"]
    ).to_list() == [48, None]
