"""Tests the rule `double_precision` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

DRAWING = """
    column = 1 ms
    mark 1 | {s}{t}
    cpu 1  | {one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    d = aten::add; input_types = ["double","double"]; input_shapes = [[8],[8]]; line = d.py:3 f
    m = aten::conv2d; input_types = ["double","double"]; input_shapes = [[8],[8]]; line = n.py:5 f
    f = aten::mm; input_types = ["float","float"]; input_shapes = [[8,8],[8,8]]
"""


def drawing(one: str) -> str:
    return DRAWING.format(s="s" * len(one), t="t" * len(one), one=one)


def test_the_line_is_the_first_that_meets_float64(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("ddmmmmmmffffffffffff"))
    assert (finding.where.file, finding.where.line) == ("d.py", 3)
    assert finding.covers == ("E13",)
    assert finding.semantics == "numerics"


def test_below_two_percent_of_the_step_it_is_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(drawing("d" + "f" * 79))
    assert judge(drawing("mmmm" + "f" * 36))


def test_more_than_the_time_in_double_is_never_promised(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("mmmmmmmmmmffffffffff"))
    assert finding.saving.upper_ms == 10.0
    assert finding.saving.estimate_ms is not None
    assert finding.saving.estimate_ms < 10.0


def test_other_steps_do_not_count(judge: Judge[Finding]) -> None:
    """Float64 operators in the first of three steps, which is not measured, do not count."""
    drawing = """
        column = 1 ms
        mark 1 | ssssssssssssssssssssttttttttttuuuuuuuuuu
        cpu 1  | mmmmmmmmmmmmmmmmmmmmmmmmmmfff mmmmmmfff
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        m = aten::conv2d; input_types = ["double","double"]; input_shapes = [[8],[8]]
        f = aten::mm; input_types = ["float","float"]; input_shapes = [[8],[8]]
    """
    [finding] = judge(
        drawing.replace("mmmmmmmmmmmmmmmmmmmmmmmmmm", "m" * 20 + "n" * 6)
        + """
        n = aten::conv2d; input_types = ["double","double"]; input_shapes = [[8],[8]]
    """
    )
    assert finding.saving.upper_ms == 6.0
    assert finding.confidence == "medium"  # no line is known


def test_a_tensor_without_dimensions_beside_floats_is_float_arithmetic(
    judge: Judge[Finding],
) -> None:
    assert not judge("""
        column = 1 ms
        mark 1 | sssssssssstttttttttt
        cpu 1  | aaaaaaaaa bbbbbbbbb
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::mul; input_types = ["float","double","float"]; input_shapes = [[8],[],[8]]
        b = aten::relu; input_types = ["float"]; input_shapes = [[8]]
    """)


def test_what_takes_doubles_among_others_is_no_arithmetic_in_double(judge: Judge[Finding]) -> None:
    assert not judge("""
        column = 1 ms
        mark 1 | sssssssssstttttttttt
        cpu 1  | aaaaaaaaa bbbbbbbbb
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = CompiledFunction; input_types = ["double","double"]; input_shapes = [[8],[8]]
        b = aten::conv2d; input_types = ["float","double"]; input_shapes = [[8],[8]]
    """)


def test_a_network_in_float_is_fed_by_accident_with_double(judge: Judge[Finding]) -> None:
    drawing = """
        column = 1 ms
        mark 1 | sssssssssstttttttttt
        cpu 1  | aaaaabbbb aaaaabbbb
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::div; input_types = ["double","Scalar"]; input_shapes = [[8],[]]; line = d.py:3 f
        b = {layer}; input_types = ["float"]; input_shapes = [[8]]
    """
    [finding] = judge(drawing.format(layer="aten::conv2d"))
    assert finding.where.line == 3
    assert not judge(drawing.format(layer="aten::linalg_eigh"))


def test_where_only_a_function_is_known_its_first_operator_is_shown(judge: Judge[Finding]) -> None:
    """Shows the function's first float64 operator, since its source line is not recorded."""
    drawing = """
        column = 1 ms
        mark 1   | ssssssssssttttttttttuuuuuuuuuu
        python 1 | ffffffffffffffffffffffffffffff
        cpu 1    | immmmmmm  immmmmmm  immmmmmm
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        f = train.py(3): train
        i = aten::index; input_types = ["double","long int"]; input_shapes = [[64,8],[8]]
        m = aten::conv2d; input_types = ["double","double"]; input_shapes = [[8],[8]]
    """
    [finding] = judge(drawing)
    assert (finding.where.file, finding.where.how) == ("train.py", "definition")
    assert len(finding.evidence[0].events) == 1


VECTORS = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | mmmmmmmml mmmmmmmml
    s = ProfilerStep#1
    t = ProfilerStep#2
    m = {operator}; line = n.py:5 f
"""
CALL = 'aten::{}; input_types = ["double","double"]; input_shapes = {}'
LAYER = 'l = aten::conv2d; input_types = ["float","float"]; input_shapes = [[8],[8]]'


def test_operators_on_single_numbers_gain_nothing(judge: Judge[Finding]) -> None:
    whole, rows = "[[900,100],[900,100]]", "[[9000,10],[9000,1]]"
    [finding] = judge(VECTORS.format(operator=CALL.format("mul", whole)) + f"    {LAYER}\n")
    assert finding.confidence == "high"
    assert finding.saving.estimate_ms is not None
    assert 3.0 < finding.saving.estimate_ms < 3.7
    assert not judge(VECTORS.format(operator=CALL.format("mul", rows)) + f"    {LAYER}\n")
    assert not judge(VECTORS.format(operator=CALL.format("lt", whole)) + f"    {LAYER}\n")
    assert not judge(VECTORS.format(operator=CALL.format("cumsum", whole)) + f"    {LAYER}\n")


def test_the_dispatch_of_short_operators_stays(judge: Judge[Finding]) -> None:
    short = VECTORS.replace("1 ms", "1 us").replace("mmmmmmmml", "m m m m l")
    short = short.format(operator=CALL.format("mul", "[[900],[900]]"))
    assert not judge(short + f"    {LAYER}\n")


def test_the_line_that_sets_the_default_dtype_is_named(judge: Judge[Finding]) -> None:
    facts = """
        facts = {"settings": {"default_dtype": "float64"}, "created": [{"kind": "default_dtype", \
        "class_name": "float64", "file": "t.py", "line": 2, "function": "<module>", \
        "is_direct": true, "packages": []}]}
    """.replace("\\\n        ", "")
    [finding] = judge(drawing("ddmmmmmmffffffffffff") + facts)
    assert (finding.where.file, finding.where.line) == ("t.py", 2)
    assert "d.py:3" in finding.fix.text
    other = facts.replace('"default_dtype": "float64"', '"default_dtype": "float32"')
    [finding] = judge(drawing("ddmmmmmmffffffffffff") + other)
    assert finding.where.file == "d.py"
