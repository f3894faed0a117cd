"""Steps that make tokens one by one, and what the rules on waits say of them."""

import pytest

from selftime.advice import RULES, Finding
from selftime.advice.detectors.token_decoding import token_decoding_of, weight_matrix_products
from selftime.testing import sketch
from selftime.trace import Trace

TOKENS = """
    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | afh{reads} afh{reads} afh{reads}
    cpu 1  |    jjjjjj              jjjjjj              jjjjjj
    call 1 | k  mmmmmm           k  mmmmmm           k  mmmmmm
    gpu 7  |  kkkkkkkk            kkkkkkkk            kkkkkkkk
    copy 7 |         m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::linear; input_shapes = [[{rows},1,64],[64,64],[64]]
    f = aten::scaled_dot_product_attention
    h = aten::linear; input_shapes = [[{rows},1,64],[1000,64]]
    b = autograd::engine::evaluate_function: AddmmBackward0
    i = {outer}; line = sample.py:4 sample
    j = {inner}
    m = Memcpy DtoH (Device -> Pageable)
"""


def drawing(outer: str, inner: str, *, rows: int = 1, reads: str = "iiiiii") -> str:
    """Three tokens of so many sequences, each of which is looked at."""
    return TOKENS.format(outer=outer, inner=inner, rows=rows, reads=f"{reads:16}")


def covers(rule: str, text: str) -> tuple[str, ...]:
    found = [o for o in RULES[rule](sketch(text)) if isinstance(o, Finding)]
    return tuple(entry for finding in found for entry in finding.covers)


def test_a_token_is_a_row_of_each_sequence() -> None:
    found = token_decoding_of(sketch(drawing("aten::item", "aten::_local_scalar_dense", rows=4)))
    assert found is not None
    assert found.tokens_per_step == 1
    assert found.products["columns"].unique().sort().to_list() == [64, 1000]
    assert not found.reads_several_times_per_token(1)
    assert found.reads_several_times_per_token(2)


@pytest.mark.parametrize("beside", ["embedding", "bmm"])
def test_a_softmax_is_of_a_language_model_beside_an_embedding_or_products_of_heads(
    beside: str,
) -> None:
    text = drawing("aten::item", "aten::item", reads="xiiiii").replace(
        "scaled_dot_product_attention", "softmax"
    )
    assert token_decoding_of(sketch(f"{text}    x = aten::{beside}\n")) is not None


@pytest.mark.parametrize(
    "told",
    [
        ("[[1,1,64],[64,64],[64]]", "oops"),
        ("[[1,1,64],[64,64],[64]]", "[[512,64],[64,64]]"),
        ("scaled_dot_product_attention", "relu"),
        ("scaled_dot_product_attention", "softmax"),  # of the actions of a policy
        ("afh", "afb"),
    ],
)
def test_other_steps_do_not_decode(told: tuple[str, str]) -> None:
    """Unreadable shapes leave the head alone, which is half of the products."""
    text = drawing("aten::item", "aten::_local_scalar_dense").replace(*told)
    assert token_decoding_of(sketch(text)) is None or told[1] == "oops"


def test_sizes_that_do_not_fit_are_no_product() -> None:
    text = drawing("aten::item", "aten::item").replace("[1000,64]", "[1000,32]")
    assert weight_matrix_products(sketch(text))["columns"].drop_nulls().unique().to_list() == [64]


def test_looking_for_the_end_of_the_text_is_told() -> None:
    assert covers("scalar_read", drawing("aten::item", "aten::_local_scalar_dense")) == ("B1", "K3")
    assert covers("branch_on_tensor", drawing("aten::is_nonzero", "aten::item")) == ("B2", "K3")


def test_a_read_for_each_sequence_is_told() -> None:
    text = """
        column = 100 us
        mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
        cpu 1  | afhiiiiiixxx        afhiiiiiixxx        afhiiiiiixxx
        cpu 1  |    jjjjjjyyy           jjjjjjyyy           jjjjjjyyy
        call 1 | k  mmmmmmnnn        k  mmmmmmnnn        k  mmmmmmnnn
        gpu 7  |  kkkkkkk             kkkkkkk             kkkkkkk
        copy 7 |         m n                 m n                 m n
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        a = aten::linear; input_shapes = [[2,1,64],[64,64],[64]]
        f = aten::scaled_dot_product_attention
        h = aten::linear; input_shapes = [[2,1,64],[1000,64]]
        i = aten::item; line = sample.py:4 sample
        j = aten::_local_scalar_dense
        x = aten::item; line = sample.py:4 sample
        y = aten::_local_scalar_dense
        m = Memcpy DtoH (Device -> Pageable)
        n = Memcpy DtoH (Device -> Pageable)
    """
    assert covers("scalar_read", text) == ("B1", "K3", "K10")


def test_drawing_a_token_is_told() -> None:
    assert covers("hidden_sync", drawing("aten::multinomial", "aten::item")) == ("B12", "K4")
    assert covers("hidden_sync", drawing("aten::linalg_inv", "aten::item")) == ("B12",)


def test_no_products_are_no_decoding() -> None:
    assert token_decoding_of(Trace()) is None
    assert not weight_matrix_products(Trace()).height
