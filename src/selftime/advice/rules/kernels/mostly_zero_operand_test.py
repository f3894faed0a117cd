"""Tests the rule `mostly_zero_operand` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

MADE = """
    o = aten::relu; input_shapes = [[64,64]]; input_types = ["float"]
    r = aten::relu; input_shapes = [[64,64]]; input_types = ["float"]
    p = aten::add; input_shapes = [[64,64],[64,64],[]]; input_types = ["float","float","Scalar"]
    m = aten::matmul; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
    b = aten::addmm; input_shapes = [[64,64],[64,32],[32,64],[],[]]; input_types = ["float","float","float","Scalar","Scalar"]
    e = aten::einsum; input_shapes = [[],[[8,64],[64,32]],[]]; input_types = ["","TensorList",""]
    n = aten::mm; input_shapes = [[64,8],[8,32]]; input_types = ["float","float"]
    d = aten::diag; input_shapes = [[64],[]]; input_types = ["float","Scalar"]; concrete_inputs = ["","0"]
    u = aten::diag; input_shapes = [[64],[]]; input_types = ["float","Scalar"]; concrete_inputs = ["","1"]
    k = aten::diag; input_shapes = [[64,64],[]]; input_types = ["float","Scalar"]; concrete_inputs = ["","0"]
    i = aten::eye; input_shapes = [[],[],[],[],[]]; input_types = ["Scalar","","","",""]; concrete_inputs = ["64","","","",""]
    s = aten::mul; input_shapes = [[64,64],[]]; input_types = ["float","double"]
    z = aten::zeros; input_shapes = [[],[],[],[],[]]; concrete_inputs = ["[8, 64]","6","","",""]
    w = aten::scatter_; input_shapes = [[8,64],[],[8,1],[]]; input_types = ["float","Scalar","long int","Scalar"]; concrete_inputs = ["","1","","1"]
    t = aten::t; input_shapes = [[8,64]]; input_types = ["float"]
    S = ProfilerStep#1
    T = ProfilerStep#2
"""  # noqa: E501 - what a letter stands for is on one line


def drawing(operators: str) -> str:
    row = operators.ljust(10, ".").replace(".", " ")
    return f"column = 1 ms\nmark 1 | {'S' * 10}{'T' * 10}\ncpu 1 | {row}{row}\n" + MADE


def test_a_scaled_identity_is_followed(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("oismmmmmr"))
    assert finding.title == "A product multiplies by an identity matrix, 64 x 64"
    assert finding.count_per_step == 1


def test_a_matrix_that_is_only_added_to_a_product_is_no_operand(judge: Judge[Finding]) -> None:
    assert not judge(drawing("oibbbbbbr"))


def test_a_sum_of_two_such_matrices_after_the_product_may_hold_the_diagonal(
    judge: Judge[Finding],
) -> None:
    assert judge(drawing("odmmmmmmr"))
    assert not judge(drawing("odmmmmmmp"))


def test_an_off_diagonal_and_the_diagonal_of_a_matrix_do_not_count(judge: Judge[Finding]) -> None:
    assert not judge(drawing("oummmmmmr"))
    assert not judge(drawing("okmmmmmmr"))


def test_ones_scattered_into_zeros_are_one_hot_rows(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("zweeeeeeo"))
    assert finding.title == "A product multiplies by one-hot rows, 8 x 64"
    [finding] = judge(drawing("zwtnnnnno"))
    assert finding.title == "A product multiplies by one-hot rows, 64 x 8"
    assert not judge(drawing("oweeeeeeo"))


SCATTERED = """
    column = 1 ms
    mark 1 | SSSSSSSSSSTTTTTTTTTT
    cpu 1  | {operators}{operators}
    cpu 1  | {inner}{inner}
    cpu 1  | {views}{views}
    S = ProfilerStep#1
    T = ProfilerStep#2
    o = aten::relu; input_shapes = [[900,64]]; input_types = ["float"]
    z = aten::zeros; input_shapes = [[],[],[],[],[]]; concrete_inputs = ["{zeros}","6","","",""]
    w = aten::index_put_; input_shapes = [[512,900],[],[],[]]; input_types = ["float","","float","Scalar"]
    i = aten::_index_put_impl_; input_shapes = [[512,900],[],[],[],[]]; input_types = ["float","","float","Scalar","Scalar"]
    v = aten::as_strided; input_shapes = [[512,900],[],[],[]]; concrete_inputs = ["","[{written}]","[0]",""]
    s = aten::scatter_; input_shapes = [[512,900],[],[512,3],[]]; input_types = ["float","Scalar","long int","Scalar"]; concrete_inputs = ["","1","","1"]
    d = aten::div; input_shapes = [[512,900],[512,1]]; input_types = ["float","float"]
    a = aten::add; input_shapes = [[512,900],[512,900],[]]; input_types = ["float","float","Scalar"]
    u = aten::mul; input_shapes = [[512,900],[512,900]]; input_types = ["float","float"]
    m = aten::mm; input_shapes = [[512,900],[900,64]]; input_types = ["float","float"]; line = net.py:9 f
    n = aten::mm; input_shapes = [[64,512],[512,900]]; input_types = ["float","float"]; line = net.py:9 f
"""  # noqa: E501 - what a letter stands for is on one line


def scattered(operators: str, written: str = "2560", zeros: str = "[512, 900]") -> str:
    at = operators.find("w")
    lanes = {
        name: (" " * at + letter).ljust(10) if at >= 0 else " " * 10
        for name, letter in (("inner", "i"), ("views", "v"))
    }
    return SCATTERED.format(operators=operators.ljust(10), written=written, zeros=zeros, **lanes)


def test_zeros_into_which_few_elements_were_written_are_found(judge: Judge[Finding]) -> None:
    [finding] = judge(scattered("ozwdmmmmmo"))
    assert finding.title == "A product multiplies by zeros with 0.6 % of other elements, 512 x 900"
    assert finding.where.line == 9
    [finding] = judge(scattered("ozwdnnnnno"))
    assert finding.fix.code is not None
    assert "sparse_coo_tensor" in finding.fix.code


def test_several_ones_in_each_row_are_scattered(judge: Judge[Finding]) -> None:
    [finding] = judge(scattered("ozsmmmmmmo"))
    assert "0.3 % of other elements" in finding.title


def test_many_or_unknown_elements_and_other_uses_are_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(scattered("ozwmmmmmmo", written="9300"))  # 2.02 %
    assert not judge(scattered("ozwmmmmmmo", written="oops"))
    assert not judge(scattered("ozwmmmmmmo", zeros="[512, 901]"))
    assert not judge(scattered("owmmmmmmmo"))  # what it writes into is unknown
    assert not judge(scattered("ozwammmmmo"))
    assert not judge(scattered("ozwummmmmo"))  # may be another tensor of the sizes
    assert not judge(scattered("ozwmmmmmmo") + "    call 1 | k\n    gpu 7 | k\n")
