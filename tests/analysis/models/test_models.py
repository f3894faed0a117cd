"""Operations and bytes of operators against PyTorch, and against counting by hand."""

from collections.abc import Callable
from math import prod
from typing import Any

import polars as pl
import pytest

import selftime
from selftime.analysis.account.useful_work import operator_efficiencies
from selftime.analysis.models import (
    MATRIX_UNIT_OPERATOR_FAMILIES,
    OPERATOR_WORK_MODELS,
    OperatorWork,
    RecordedOperatorCall,
    work_model_of_operator,
    work_of_operator_call,
)
from selftime.analysis.models.attention_work import attended_query_key_pairs
from selftime.testing import sketch

FLOAT, HALF, SCALAR, LIST = "float", "c10::Half", "Scalar", "ScalarList"


def told(name: str, shapes: str, types: list[str], *values: str, strides: str = "") -> OperatorWork:
    """The work of a call whose first arguments are tensors and whose others are the values."""
    written = '","'.join([""] * (len(types) - len(values)) + list(values))
    found = work_of_operator_call(
        name, RecordedOperatorCall(shapes, str(types).replace("'", '"'), f'["{written}"]', strides)
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "shapes", "types", "flops", "moved"),
    [
        ("aten::mm", "[[2,3],[3,4]]", [FLOAT] * 2, 2 * 24, 4 * (6 + 12 + 8)),
        ("aten::mm", "[[2,3],[3,4]]", [HALF] * 2, 2 * 24, 2 * (6 + 12 + 8)),
        ("aten::mv", "[[2,3],[3]]", [FLOAT] * 2, 2 * 6, 4 * (6 + 3 + 2)),
        ("aten::bmm", "[[5,2,3],[5,3,4]]", [FLOAT] * 2, 2 * 120, 4 * 5 * (6 + 12 + 8)),
        ("aten::matmul", "[[7,1,2,3],[5,3,4]]", [FLOAT] * 2, 2 * 840, 4 * (42 + 60 + 280)),
        ("aten::addmm", "[[4],[2,3],[3,4]]", [FLOAT] * 3, 2 * 24, 4 * (4 + 6 + 12 + 8)),
        ("aten::linear", "[[5,2,3],[4,3],[4]]", [FLOAT] * 3, 2 * 120, 4 * (30 + 12 + 4 + 40)),
        ("aten::_int_mm", "[[2,3],[3,4]]", ["signed char"] * 2, 2 * 24, 6 + 12 + 4 * 8),
        ("aten::add_", "[[2,3],[3]]", [FLOAT] * 2, 6, 4 * (6 + 3 + 6)),
        ("aten::gt", "[[2,3],[]]", [FLOAT, SCALAR], 6, 4 * 6 + 6),
        ("aten::add", "[[2,3],[2,3]]", ["long int"] * 2, 0, 8 * 18),
        ("aten::mul", "[[2,3],[2,3]]", [HALF, FLOAT], 6, 6 * (2 + 4 + 4)),
        ("aten::mul", "[[2,3],[]]", [HALF, FLOAT], 6, 6 * (2 + 2) + 4),
        ("aten::copy_", "[[6],[6]]", [HALF, FLOAT], 0, 6 * (2 + 4)),
        ("aten::fill_", "[[6],[]]", [FLOAT, SCALAR], 0, 24),
        ("aten::embedding", "[[9,4],[2]]", [FLOAT, "long int"], 0, 4 * 8 + 16 + 4 * 8),
        ("aten::embedding", "[[2,4],[9]]", [FLOAT, "long int"], 0, 4 * 8 + 72 + 4 * 36),
    ],
)
def test_by_hand(name: str, shapes: str, types: list[str], flops: int, moved: int) -> None:
    found = told(name, shapes, types)
    assert (found.flops, found.bytes) == (flops, moved)


def test_what_is_expanded_is_read_once() -> None:
    whole = told("aten::neg", "[[8,4]]", [FLOAT], strides="[[4,1]]")
    expanded = told("aten::neg", "[[8,4]]", [FLOAT], strides="[[0,1]]")
    assert (whole.bytes, expanded.bytes) == (4 * 64, 4 * (4 + 32))
    assert whole.flops == expanded.flops == 32


@pytest.mark.parametrize(
    ("name", "lists", "flops", "numbers"),
    [
        ("_foreach_add_", [[[2, 3], [4]]] * 2, 10, 30),
        ("_foreach_copy_", [[[2, 3], [4]]] * 2, 0, 20),
        ("_foreach_zero_", [[[2, 3], [4]]], 0, 10),
        # parameters, means and squares read and written, gradients read
        ("_fused_adamw_", [[[2, 3], [4]]] * 4 + [[], [[], []]], 140, 70),
        ("_fused_sgd_", [[[2, 3], [4]]] * 2 + [[]], 60, 30),
        ("cat", [[[2, 3], [4]]], 0, 20),
    ],
)
def test_of_lists_numbers_are_told_and_no_dtype(
    name: str, lists: list[Any], flops: int, numbers: int
) -> None:
    found = told(f"aten::{name}", str(lists), ["TensorList"] * len(lists))
    assert (found.flops, found.bytes, found.elements_of_unknown_dtype) == (flops, None, numbers)


def test_a_scaled_product_writes_what_is_asked() -> None:
    fp8 = "c10::Float8_e4m3fn"
    types = [fp8, fp8, FLOAT, FLOAT, "", "", SCALAR, SCALAR]
    shapes = "[[32,16],[16,64],[],[],[],[],[],[]]"
    found = told("aten::_scaled_mm", shapes, types, "15", "False")
    assert found == OperatorWork(
        "product", 2 * 32 * 16 * 64, 32 * 16 + 16 * 64 + 8 + 2 * 32 * 64, "float8"
    )


@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (4, 4), (2, 5), (5, 2), (0, 3), (3, 0), (7, 6)]
)
def test_pairs_are_those_that_a_mask_keeps(queries: int, keys: int) -> None:
    both = [(q, k) for q in range(queries) for k in range(keys)]
    assert attended_query_key_pairs(queries, keys, None) == len(both)
    assert attended_query_key_pairs(queries, keys, "first") == sum(k <= q for q, k in both)
    assert attended_query_key_pairs(queries, keys, "last") == sum(
        k <= q + keys - queries for q, k in both
    )


SIZE = (2, 4, 6, 8)
NO = ("",)
ATTENTION_MODELS = {  # what follows queries, keys and values; `{}` is whether the mask is causal
    "_scaled_dot_product_flash_attention": ("0.", "{}", "False", *NO),
    "_scaled_dot_product_flash_attention_for_cpu": ("0.", "{}", *NO * 2),
    "_scaled_dot_product_efficient_attention": (*NO, "True", "0.", "{}", *NO),
    "_scaled_dot_product_cudnn_attention": (*NO, "True", "0.", "{}", "False", *NO),
    "_cudnn_attention_forward": (*NO * 3, "6", "6", "True", "0.", "{}", "False", *NO),
    "_scaled_dot_product_flash_attention_backward": (*NO * 4, "6", "6", "0.", "{}", *NO * 3),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (*NO * 2, "0.", "{}", *NO * 2),
    "_scaled_dot_product_efficient_attention_backward": (
        *NO * 5, "0.", "[True, True, True, False]", "{}", *NO
    ),
    "_scaled_dot_product_cudnn_attention_backward": (*NO * 7, "6", "6", "0.", "{}", *NO),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("name", "values"), ATTENTION_MODELS.items(), ids=ATTENTION_MODELS)
def test_attention_gives_what_torchs_formulas_give(name: str, values: tuple[str, ...]) -> None:
    counter: Any = pytest.importorskip("torch.utils.flop_counter")
    backward = name.endswith("backward")
    whole = (
        counter.sdpa_backward_flop_count(SIZE, SIZE, SIZE, SIZE)
        if backward
        else counter.sdpa_flop_count(SIZE, SIZE, SIZE)
    )
    tensors = 3 + backward
    shapes = str([list(SIZE)] * tensors + [[]] * len(values))
    types = [FLOAT] * tensors + [""] * len(values)
    by_mask = {
        causal: told(f"aten::{name}", shapes, types, *(v.format(causal) for v in values)).flops
        for causal in (False, True)
    }
    assert by_mask == {False: whole, True: whole * (6 * 7 // 2) // (6 * 6)}


@pytest.mark.parametrize(
    ("name", "first", "values"),
    [
        ("_flash_attention_forward", 0, (*NO * 2, "6", "6", "0.", "True", "False", *NO * 6)),
        ("_efficient_attention_forward", 0, (*NO * 5, "0.", "1", "True", *NO * 3)),
        ("_efficient_attention_forward", 0, (*NO * 5, "0.", "2", "True", *NO * 3)),
        ("_flash_attention_backward", 1, (*NO * 4, "6", "6", "0.", "True", *NO * 5)),
        ("_efficient_attention_backward", 1, (*NO * 7, "0.", *NO * 2, "1", "False", *NO * 4)),
    ],
)
def test_attention_with_heads_behind_places(name: str, first: int, values: tuple[str, ...]) -> None:
    """By hand: 8 heads, 21 pairs of 36, sizes of 8 and 5; two products forward, five backward."""
    shapes = [[2, 6, 4, 8]] * first + [[2, 6, 4, 8], [2, 6, 4, 8], [2, 6, 4, 5]]
    types = [FLOAT] * len(shapes) + [""] * len(values)
    told_all = str(shapes + [[]] * len(values))
    products = 3 * 8 + 2 * 5 if first else 8 + 5
    assert told(f"aten::{name}", told_all, types, *values).flops == 2 * 8 * 21 * products


def test_packed_sequences_of_untold_lengths_have_no_count() -> None:
    values = '["","","","","","6","6","0.","False","False","","","","",""]'
    shapes = "[[12,4,8],[12,4,8],[12,4,8],[3],[3]" + ",[]" * 10 + "]"
    types = str([FLOAT] * 3 + ["int"] * 2 + [""] * 10).replace("'", '"')
    assert (
        work_of_operator_call(
            "aten::_flash_attention_forward", RecordedOperatorCall(shapes, types, values)
        )
        is None
    )


@pytest.mark.parametrize(
    ("shapes", "types", "values"),
    [
        ("[[4,", None, None),
        ("{}", None, None),
        ("[]", "[]", None),
        ("[[],[]]", None, None),
        ("[[2,3],[4,5]]", '["float","float"]', None),
        ('[[2,"a"],[4,5]]', '["float","float"]', None),
        ("[[2,-3],[-3,5]]", '["float","float"]', None),
        ("[[[2,3]],[[3,4]]]", '["TensorList","TensorList"]', None),
        ("[null,null]", '["float"]', "[]"),
    ],
)
@pytest.mark.parametrize(
    "name", ["aten::mm", "aten::conv2d", "aten::native_batch_norm", "aten::gather"]
)
def test_shapes_that_do_not_fit_have_no_work(
    name: str, shapes: str, types: str | None, values: str | None
) -> None:
    assert work_of_operator_call(name, RecordedOperatorCall(shapes, types, values)) is None


@pytest.mark.parametrize("name", ["aten::view", "train", "mm", "aten::", "", "aten::as_strided"])
def test_what_has_no_model_has_no_work(name: str) -> None:
    assert (
        work_of_operator_call(name, RecordedOperatorCall("[[2,3],[3,4]]", '["float","float"]'))
        is None
    )


def test_a_dtype_that_is_not_told_leaves_bytes_unknown() -> None:
    found = work_of_operator_call("aten::mm", RecordedOperatorCall("[[2,3],[3,4]]"))
    assert found == OperatorWork("product", 48, None, None)


Program = Callable[[Any], Any]

NETS: dict[str, Program] = {
    "layers": lambda nn: (
        nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)),
        (5, 8),
    ),
    "layers of sequences": lambda nn: (
        nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3, bias=False)),
        (5, 7, 8),
    ),
    "convolution 1d": lambda nn: (nn.Conv1d(4, 6, 3, stride=2, padding=1), (2, 4, 11)),
    "convolution 2d": lambda nn: (nn.Conv2d(4, 6, 3, (2, 1), (1, 0), 2), (2, 4, 11, 13)),
    "convolution 3d": lambda nn: (nn.Conv3d(4, 6, 3, padding=1), (2, 4, 5, 6, 7)),
    "convolution, same": lambda nn: (nn.Conv2d(4, 6, 3, padding="same"), (2, 4, 11, 13)),
    "transposed 1d": lambda nn: (nn.ConvTranspose1d(4, 6, 3, stride=2), (2, 4, 11)),
    "transposed 2d": lambda nn: (nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), (2, 4, 11, 13)),
    "attention": lambda nn: (
        nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True),
        (2, 5, 16),
    ),
    "image": lambda nn: (
        nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 4, 1, bias=False),
            nn.Flatten(),
            nn.LayerNorm(64),
            nn.Linear(64, 10),
        ),
        (2, 3, 10, 10),
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_forward_and_backward_add_up_to_what_torch_counts(net: Program) -> None:
    torch: Any = pytest.importorskip("torch")
    counter: Any = pytest.importorskip("torch.utils.flop_counter")
    module, shape = net(torch.nn)
    given = torch.randn(shape, requires_grad=True)
    backends = torch.nn.attention
    with backends.sdpa_kernel(backends.SDPBackend.MATH):
        with counter.FlopCounterMode(display=False) as counted:
            module(given).sum().backward()
        with selftime.profile(record_shapes=True) as prof:
            module(given).sum().backward()
    table = prof.trace().view("operators").filter("tensor_core_eligible")
    assert table["self_model_flops"].sum() == counted.get_total_flops()


@pytest.mark.torch
def test_groups_multiply_only_their_own_channels() -> None:
    """By hand: 48 places, 9 weights of a kernel, 6 results of 2 channels each; thrice in all."""
    torch: Any = pytest.importorskip("torch")
    module = torch.nn.Conv2d(4, 6, 3, groups=2)
    with selftime.profile(record_shapes=True) as prof:
        module(torch.randn(1, 4, 8, 10, requires_grad=True)).sum().backward()
    table = prof.trace().view("operators").filter("tensor_core_eligible")
    assert table["self_model_flops"].sum() == 3 * 2 * 48 * 9 * 6 * 2


@pytest.mark.torch
def test_recurrent_layers_multiply_each_weight_once_a_step() -> None:
    torch: Any = pytest.importorskip("torch")
    module = torch.nn.LSTM(4, 5, 2, bidirectional=True)
    with selftime.profile(record_shapes=True) as prof, torch.no_grad():
        module(torch.randn(3, 2, 4))
    matrices = sum(prod(p.shape) for p in module.parameters() if len(p.shape) == 2)
    table = prof.trace().view("operators").filter("tensor_core_eligible")
    assert table["self_model_flops"].sum() == 2 * 3 * 2 * matrices


@pytest.mark.torch
def test_every_model_is_of_an_operator_of_torch_or_of_an_older_one() -> None:
    """In place, too: `eq_` is one, and `isnan_` does no harm."""
    torch: Any = pytest.importorskip("torch")
    aten = {name for name in OPERATOR_WORK_MODELS if "::" not in name}
    gone = {name for name in aten if not hasattr(torch.ops.aten, name.rstrip("_"))}
    gone -= {name for name in gone if hasattr(torch.ops.aten, name)}
    assert gone == {
        "_cat",
        "_mps_linear",
        "cudnn_convolution_backward_input",
        "miopen_convolution_backward_input",
        "mkldnn_convolution_backward_input",
    }


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "mm": lambda t, _: (t.mm, t.randn(3, 4), t.randn(4, 5)),
    "bmm": lambda t, _: (t.bmm, t.randn(2, 3, 4), t.randn(2, 4, 5)),
    "addmm": lambda t, _: (t.addmm, t.randn(5), t.randn(3, 4), t.randn(4, 5)),
    "baddbmm": lambda t, _: (t.baddbmm, t.randn(2, 3, 5), t.randn(2, 3, 4), t.randn(2, 4, 5)),
    "conv1d": lambda t, f: (lambda *a: f.conv1d(*a, stride=2), t.randn(2, 3, 9), t.randn(4, 3, 3)),
    "conv2d": lambda t, f: (
        lambda *a: f.conv2d(*a, padding=(2, 1), dilation=2, groups=2),
        t.randn(2, 4, 9, 8),
        t.randn(6, 2, 3, 3),
        t.randn(6),
    ),
    "conv_transpose2d": lambda t, f: (
        lambda *a: f.conv_transpose2d(*a, stride=3, padding=1, output_padding=1, groups=2),
        t.randn(2, 4, 5, 6),
        t.randn(4, 3, 3, 3),
        t.randn(6),
    ),
    "add": lambda t, _: (t.add, t.randn(3, 1, 5), t.randn(4, 1)),
    "mul": lambda t, _: (t.mul, t.randn(3, 5).half(), t.randn(3, 5)),
    "gt": lambda t, _: (t.gt, t.randn(3, 5), t.randn(3, 5)),
    "where": lambda t, _: (t.where, t.randn(3, 5) > 0, t.randn(3, 5), t.randn(5)),
    "gelu": lambda t, f: (f.gelu, t.randn(3, 5)),
    "sum": lambda t, _: (lambda a: a.sum((0, 2)), t.randn(3, 4, 5)),
    "mean": lambda t, _: (lambda a: a.mean(-1, keepdim=True), t.randn(3, 4, 5)),
    "argmax": lambda t, _: (lambda a: a.argmax(1), t.randn(3, 4)),
    "cumsum": lambda t, _: (lambda a: a.cumsum(1), t.randn(3, 4)),
    "linalg_vector_norm": lambda t, _: (t.linalg.vector_norm, t.randn(3, 4)),
    "_softmax": lambda t, _: (lambda a: a.softmax(-1), t.randn(3, 5)),
    "embedding": lambda t, f: (f.embedding, t.tensor([0, 1, 2]), t.randn(3, 5)),
    "gather": lambda t, _: (lambda a, i: a.gather(1, i), t.randn(2, 3), t.tensor([[2, 1, 0]] * 2)),
    "index_select": lambda t, _: (
        lambda a, i: a.index_select(0, i), t.randn(3, 5), t.tensor([2, 0, 1])
    ),
    "max_pool2d_with_indices": lambda t, f: (
        lambda a: f.max_pool2d(a, 3, 2, 1, ceil_mode=True, return_indices=True),
        t.randn(2, 3, 8, 9),
    ),
    "avg_pool2d": lambda t, f: (lambda a: f.avg_pool2d(a, 2), t.randn(2, 3, 8, 9)),
    "_adaptive_avg_pool2d": lambda t, f: (
        lambda a: f.adaptive_avg_pool2d(a, (2, 3)), t.randn(2, 3, 8, 9)
    ),
    "native_dropout": lambda t, _: (lambda a: t.native_dropout(a, 0.5, True), t.randn(3, 5)),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("name", "make"), CALLS.items(), ids=CALLS)
def test_bytes_are_those_of_the_tensors_given_and_made(
    name: str, make: Callable[[Any, Any], Any]
) -> None:
    torch: Any = pytest.importorskip("torch")
    call, *given = make(torch, torch.nn.functional)
    with selftime.profile(record_shapes=True) as prof, torch.no_grad():
        made = call(*given)
    tensors = [*given, *(made if isinstance(made, tuple) else (made,))]
    moved = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    assert total_tensor_bytes(prof.trace(), f"aten::{name}") == {moved}


@pytest.mark.torch
@pytest.mark.parametrize("rows", [[2, 0, 1, 1], [[0, 2], [1, 1]]])
def test_indexing_by_a_tensor_moves_its_result_twice_and_the_indices(rows: list[Any]) -> None:
    torch: Any = pytest.importorskip("torch")
    given, places = torch.randn(6, 5, 5), torch.tensor(rows)
    with selftime.profile(record_shapes=True) as prof, torch.no_grad():
        given[places]
        given[:, places]
    table = prof.trace().view("operators", by="name+shape")
    found = table.filter(pl.col("name").cast(pl.String) == "aten::index")
    results = (4 * 5 * 5 + 6 * 4 * 5) * 4
    assert found["model_bytes"].sum() == 2 * results + 2 * 4 * 8


def test_values_written_by_index_are_read_and_written() -> None:
    index = [FLOAT, SCALAR, "long int"]
    one = told("aten::scatter_", "[[9,4],[],[9,1],[]]", [*index, SCALAR], "1", "", "1")
    assert one.bytes == 9 * (8 + 4)
    shapes = "[[9,4],[],[6],[6,4],[]]"
    added = told("aten::index_add_", shapes, [*index, FLOAT, SCALAR], "0", "", "", "1")
    assert (added.flops, added.bytes) == (24, 48 + 3 * 24 * 4)
    copied = told("aten::index_copy_", shapes, [*index, FLOAT], "0", "", "")
    assert copied.bytes == 48 + 2 * 24 * 4
    moved = told("aten::scatter_add_", "[[9,4],[],[6,4],[6,4]]", [*index, FLOAT], "0", "", "")
    assert (moved.flops, moved.bytes) == (24, 24 * 8 + 3 * 24 * 4)


def total_tensor_bytes(trace: Any, name: str) -> set[int]:
    """The model's bytes of each distinct call of an operator."""
    told_of = trace.op_args.join(trace.slices.select("id", "name"), on="id").filter(
        pl.col("name").cast(pl.String) == name
    )
    texts = ("input_shapes", "input_types", "concrete_inputs", "input_strides")
    found = [
        work_of_operator_call(name, RecordedOperatorCall(*row))
        for row in told_of.select(texts).cast(pl.String).iter_rows()
    ]
    return {one.bytes for one in found if one is not None and one.bytes is not None}


def test_families_of_matrices_are_those_of_tensor_cores() -> None:
    assert set(MATRIX_UNIT_OPERATOR_FAMILIES) == {
        "attention",
        "convolution",
        "recurrence",
        "product",
    }
    assert work_model_of_operator("aten::mm_") is None


class Counted:
    """A number that counts the operations on it and its like."""

    operations = 0

    def _count(self, _other: object = None) -> "Counted":
        Counted.operations += 1
        return self

    __add__ = __sub__ = __mul__ = _count


Numbers = list[Counted]


def add_up(numbers: Numbers) -> Counted:
    total = numbers[0]
    for number in numbers[1:]:
        total = total + number
    return total


def normalise(x: Numbers, w: Counted, b: Counted) -> None:
    mean = add_up(x)
    d = [n - mean for n in x]
    scale = add_up([n * n for n in d])
    [n * scale * w + b for n in d]


def normalise_by_squares(x: Numbers, w: Counted, _b: Counted) -> None:
    scale = add_up([n * n for n in x])
    [n * scale * w for n in x]


def gradients(x: Numbers, w: Counted, b: Counted) -> None:
    """Of the input, the weight and the bias; `x` stands for the gradient, too."""
    y = [(n - b) * b for n in x]
    g = [n * w for n in x]
    of_g, of_both = add_up(g), add_up([n * m for n, m in zip(g, y, strict=True)])
    [(n - of_g - m * of_both) * b for n, m in zip(g, y, strict=True)]
    add_up([n * m for n, m in zip(x, y, strict=True)])
    add_up(x)


def gradients_of_channels(x: Numbers, w: Counted, b: Counted) -> None:
    """The same with one weight for all, which goes into the scale: two sums are the gradients."""
    y = [(n - b) * b for n in x]
    of_g, of_both = add_up(x), add_up([n * m for n, m in zip(x, y, strict=True)])
    [(n - of_g - m * of_both) * w for n, m in zip(x, y, strict=True)]


def gradients_by_squares(x: Numbers, w: Counted, b: Counted) -> None:
    y = [n * b for n in x]
    g = [n * w for n in x]
    of_both = add_up([n * m for n, m in zip(g, y, strict=True)])
    [(n - m * of_both) * b for n, m in zip(g, y, strict=True)]
    add_up([n * m for n, m in zip(x, y, strict=True)])


def softmax(x: Numbers, w: Counted, _b: Counted) -> None:
    add_up(x)  # the greatest: as many comparisons as additions
    e = [(n - w)._count() for n in x]
    total = add_up(e)
    [n * total for n in e]


def gradient_of_softmax(x: Numbers, w: Counted, _b: Counted) -> None:
    total = add_up([n * w for n in x])
    [(n - total) * w for n in x]


def an_element(formula: Callable[[Numbers, Counted, Counted], None]) -> int:
    """Operations for each number more."""
    found = []
    for size in (100, 200):
        Counted.operations = 0
        formula([Counted() for _ in range(size)], Counted(), Counted())
        found.append(Counted.operations)
    more, rest = divmod(found[1] - found[0], 100)
    assert rest == 0
    return more


ROWS, ONE = "[6,4]", "[4]"


@pytest.mark.parametrize(
    ("name", "shapes", "values", "formula"),
    [
        ("native_layer_norm", [ROWS, "[]", ONE, ONE, "[]"], ["[4]", "", "", "1e-5"], normalise),
        ("native_group_norm", [ROWS, ONE, ONE], [], normalise),
        (
            "native_batch_norm",
            [ROWS, ONE, ONE, ONE, ONE, "[]", "[]", "[]"],
            ["True", "0.1", "1e-5"],
            normalise,
        ),
        ("_fused_rms_norm", [ROWS, "[]", ONE, "[]"], ["[4]", "", "1e-5"], normalise_by_squares),
        ("native_layer_norm_backward", [ROWS, ROWS, "[]", ONE, ONE, ONE], [], gradients),
        ("native_group_norm_backward", [ROWS, ROWS, ONE, ONE, ONE], [], gradients),
        ("native_batch_norm_backward", [ROWS, ROWS, ONE, ONE], [], gradients_of_channels),
        ("cudnn_batch_norm_backward", [ROWS, ROWS, ONE, ONE], [], gradients_of_channels),
        ("_fused_rms_norm_backward", [ROWS, ROWS, "[]", ONE, ONE], [], gradients_by_squares),
        ("_softmax", [ROWS, "[]", "[]"], ["-1", "False"], softmax),
        ("_softmax_backward_data", [ROWS, ROWS, "[]", "[]"], ["-1", "6"], gradient_of_softmax),
    ],
)
def test_operations_are_those_of_the_textbook(
    name: str,
    shapes: list[str],
    values: list[str],
    formula: Callable[[Numbers, Counted, Counted], None],
) -> None:
    types = [FLOAT if shape != "[]" else "" for shape in shapes]
    found = told(f"aten::{name}", f"[{','.join(shapes)}]", types, *values)
    assert found.flops == 24 * an_element(formula)


def test_products_of_sparse_matrices_have_no_model() -> None:
    """The sizes of their operands count elements that are not stored."""
    trace = sketch(
        """
        column = 10 us
        cpu 1 | aaaaaa  bbbbbb  mmmmmm
        cpu 1 |  ssss    dddd
        a = aten::mm; input_shapes = [[100,100],[100,8]]; input_types = ["float","float"]
        s = aten::_sparse_addmm; input_shapes = [[100,8],[100,100],[100,8]]
        b = aten::_sparse_mm
        d = aten::addmm; input_shapes = [[8],[100,100],[100,8]]; input_types = ["float","float"]
        m = aten::mm; input_shapes = [[100,100],[100,8]]; input_types = ["float","float"]
        """
    )
    flops = dict(trace.view("operators").select("name", "model_flops").iter_rows())
    assert flops["aten::mm"] == 2 * 100 * 100 * 8
    assert flops["aten::addmm"] is None


@pytest.mark.parametrize(("size", "is_known"), [(100, True), (1000, False)])
def test_a_product_far_above_the_peak_refutes_its_model(size: int, is_known: bool) -> None:
    trace = sketch(
        f"""
        column = 10 us
        run | before 1 s
        run | 2 training 1 ms
        run | 1 cpu threads: float32 100 GFLOP/s, copies 20 GB/s
        cpu 1 | aaaaaa
        a = aten::mm; input_shapes = {[[size, size]] * 2}; input_types = ["float","float"]
        """
    )
    every = operator_efficiencies(trace).of_slices(trace.slices["id"])
    assert every["efficiency"].is_not_null().any() == is_known
