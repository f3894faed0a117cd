from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.lines import lines
from selftime.views.modules import modules
from selftime.views.operators import operators

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

COLUMN = 10_000

MODEL = """
    m = train.py(3): main
    n = nn.Module: Net_0; module_id = 0
    l = nn.Module: Linear_0; module_id = 0
    o = nn.Module: Linear_1; module_id = 1
    a = aten::linear; sequence = 7; forward_thread = 0
    b = aten::linear; sequence = 8; forward_thread = 0
    v = autograd::engine::evaluate_function: AddmmBackward0; forward_thread = 1; forward = b
    w = autograd::engine::evaluate_function: AddmmBackward0; forward_thread = 1; forward = a
    g = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad; forward = a
    s = Optimizer.step#SGD.step
"""
STEP = f"""
    {MODEL}
    python 1 | mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
    python 1 |  nnnnnnnnnnn
    python 1 |   llll  ooo
    cpu 1    |    aa   bbb            ss
    call 1   |    k     p             u
    cpu 2    |             vvvv www gg
    call 2   |             q    r   t
    gpu 7    |     kkk   pp qqqqqrrrrtu
"""


def drawn(table: pl.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    """Rows of times in columns of a drawing."""
    times = [name for name in columns if name.endswith("time")]
    return table.select(columns).with_columns(pl.col(times) // COLUMN).rows()


def test_nothing_recorded_has_no_modules() -> None:
    assert modules(Trace()).is_empty()
    assert modules(sketch("cpu 1 | aaa")).is_empty()


def test_each_module_has_its_own_time_and_that_of_those_within() -> None:
    table = modules(sketch(STEP))

    columns = ("path", "calls", "total_device_time", "device_time")
    assert drawn(table, *columns, "total_cpu_time", "self_cpu_time") == [
        ("Net_0", 1, 14, 0, 18, 4),
        ("Net_0.Linear_0", 1, 7, 7, 7, 7),
        ("Net_0.Linear_1", 1, 7, 7, 7, 7),
        (None, None, 2, 2, 22, 22),
    ]
    assert table.select("name", "class", "instance", "depth", "id", "parent").rows() == [
        ("Net_0", "Net", 0, 0, 0, None),
        ("Linear_0", "Linear", 0, 1, 1, 0),
        ("Linear_1", "Linear", 1, 1, 2, 0),
        (None, None, None, None, None, None),
    ]


def test_the_backward_pass_is_apart_and_accumulation_is_in_no_module() -> None:
    table = modules(sketch(STEP))

    assert drawn(table, "path", "forward_device_time", "backward_device_time") == [
        ("Net_0", 5, 9),
        ("Net_0.Linear_0", 3, 4),
        ("Net_0.Linear_1", 2, 5),
        (None, 1, 1),  # the optimizer; the sum of gradients
    ]
    assert drawn(table, "path", "forward_cpu_time", "backward_cpu_time") == [
        ("Net_0", 11, 7),
        ("Net_0.Linear_0", 4, 3),
        ("Net_0.Linear_1", 3, 4),
        (None, 20, 2),
    ]


RECOMPUTE = """
    n = nn.Module: Net_0; module_id = 0
    c = nn.Module: Block_0; module_id = 0
    l = nn.Module: Linear_0; module_id = 0
    r = nn.Module: ReLU_0; module_id = 0
    a = aten::linear; sequence = 7; forward_thread = 0
    b = aten::relu; sequence = 8; forward_thread = 0
    d = aten::linear; sequence = 1; forward_thread = 0
    e = aten::relu; sequence = 2; forward_thread = 0
    v = autograd::engine::evaluate_function: ReluBackward0; forward_thread = 1; forward = b
    w = autograd::engine::evaluate_function: AddmmBackward0; forward_thread = 1; forward = a
    f = torch/utils/checkpoint.py(9): unpack_hook
    python 1 | nnnnnnnnnnnnn
    python 1 |  ccccccccccc
    python 1 |   llll rrrr
    cpu 1    |    aa   bb
    call 1   |    k    p
    python 2 |                 fffffffffff
    python 2 |                  {again}
    python 2 |                   lll  rrr
    cpu 2    |                vvvvvvvvvvvvvv www
    cpu 2    |                   dd   ee
    call 2   |                   s    t   q  w
    gpu 7    |     kk   p         sss  tt    qwwww
"""


@pytest.mark.parametrize("again", ["cccccccccc", "          "])
def test_what_is_recomputed_is_the_node_that_it_was_in_forward(again: str) -> None:
    """The node of the last operator recomputes the whole block, or a function of the block."""
    table = modules(sketch(RECOMPUTE.format(again=again)))

    times = ("forward_device_time", "recompute_device_time", "backward_device_time")
    assert drawn(table, "path", "calls", *times) == [
        ("Net_0", 1, 3, 5, 5),
        ("Net_0.Block_0", 1, 3, 5, 5),
        ("Net_0.Block_0.Linear_0", 1, 2, 3, 4),
        ("Net_0.Block_0.ReLU_0", 1, 1, 2, 1),
        (None, None, 0, 0, 0),
    ]
    recomputed = 1 if again.strip() else 0
    assert table["recomputes"].to_list() == [0, recomputed, 1, 1, None]


def test_operators_that_autograd_numbers_are_recomputed_within_the_backward_pass() -> None:
    """Without frames, on one thread."""
    trace = sketch("""
        n = nn.Module: Net_0; module_id = 0
        a = aten::exp; sequence = 3; forward_thread = 0
        v = CheckpointFunctionBackward; forward_thread = 1; forward = a
        d = aten::exp; sequence = 4; forward_thread = 0
        e = aten::empty
        g = aten::mul
        python 1 | nnnn
        cpu 1    | aaa   vvvvvvvvvv
        cpu 1    |        dddd  gg
        cpu 1    |         ee
    """)

    times = ("forward_cpu_time", "recompute_cpu_time", "backward_cpu_time", "total_cpu_time")
    assert drawn(modules(trace), *times) == [(4, 4, 6, 14), (0, 0, 0, 0)]


def test_a_module_called_within_two_others_is_a_node_in_each() -> None:
    trace = sketch("""
        x = nn.Module: Encoder_0; module_id = 0
        y = nn.Module: Decoder_0; module_id = 0
        e = nn.Module: Embedding_0; module_id = 0
        python 1 | xxxxx yyyyyyyyyy
        python 1 |  eee   ee  ee
    """)

    assert drawn(modules(trace), "path", "calls", "self_cpu_time", "instance") == [
        ("Decoder_0", 1, 6, 0),
        ("Decoder_0.Embedding_0", 2, 4, 0),
        ("Encoder_0", 1, 2, 0),
        ("Encoder_0.Embedding_0", 1, 3, 0),
        (None, None, 0, None),
    ]


def test_by_class_one_within_another_of_its_class_counts_once() -> None:
    trace = sketch("""
        s = nn.Module: Sequential_0; module_id = 0
        t = nn.Module: Sequential_1; module_id = 1
        l = nn.Module: Linear_0; module_id = 0
        python 1 | ssssssssss tt
        python 1 |  tttttt
        python 1 |   llll
    """)
    table = modules(trace, by="class")

    columns = ("path", "class", "calls", "total_cpu_time", "self_cpu_time")
    assert drawn(table, *columns) == [
        ("Sequential", "Sequential", 3, 12, 8),
        ("Linear", "Linear", 1, 4, 4),
        (None, None, None, 0, 0),
    ]


def test_lightnings_annotations_tell_modules_and_their_attributes() -> None:
    trace = sketch("""
        m = [pl][module]net.Encoder: model.encoder
        l = [pl][module]torch.nn.modules.linear.Linear: model.encoder.fc
        mark 1 | mmmmmm
        mark 1 |  lll
        cpu 1  |  aaa   bb
    """)

    columns = ("path", "name", "class", "total_cpu_time", "self_cpu_time")
    assert drawn(modules(trace), *columns) == [
        ("model.encoder", "encoder", "Encoder", 6, 3),
        ("model.encoder.fc", "fc", "Linear", 3, 3),
        (None, None, None, 2, 2),
    ]


def test_operations_and_memory_are_those_of_all_within() -> None:
    trace = sketch("""
        n = nn.Module: Net_0; module_id = 0
        l = nn.Module: Linear_0; module_id = 0
        a = aten::mm; input_shapes = [[2,3],[3,4]]; input_types = ["float","float"]
        K = keep; bytes = 512; device_type = 1; device = 0
        python 1 | nnnnnn
        python 1 |  llll
        cpu 1    |   aa
        memory 1 |   K
    """)
    table = modules(trace)

    assert table["model_flops"].to_list() == [48, 48, 0]
    assert table["device_memory"].to_list() == [512, 512, 0]
    assert modules(sketch(STEP)).select("model_flops", "device_memory").null_count().row(0) == (
        4,
        4,
    )


LANES = st.text("  abcnnmm", max_size=30)
LEGEND = """
    n = nn.Module: Net_0; module_id = 0
    m = nn.Module: Linear_3; module_id = 3
    a = aten::mm; sequence = 1; forward_thread = 0
    b = MmBackward0; sequence = 1; forward_thread = 1; forward = a
"""


@given(st.lists(LANES, min_size=8, max_size=8))
def test_own_times_add_up_to_all_there_is(lanes: list[str]) -> None:
    kinds = ("python 1", "python 1", "cpu 1", "cpu 1", "call 1", "python 2", "cpu 2", "gpu 7")
    drawing = "\n".join(f"{kind} | {lane}" for kind, lane in zip(kinds, lanes, strict=True))
    trace = sketch(f"{LEGEND}\n{drawing}")
    _check(trace, modules(trace), modules(trace, by="class"))


def _check(trace: Trace, *tables: pl.DataFrame) -> None:
    """Own times are whole, and totals hold what is within."""
    if not any(table.height for table in tables):
        return
    kernels = operators(trace).filter(pl.col("kind").is_in(["kernel", "copy"]))
    device, host = kernels["self_device_time_total"].sum(), lines(trace)["self_cpu_time"].sum()
    for table in tables:
        _check_sums(table, device, host)


def _check_sums(table: pl.DataFrame, device: object, host: object) -> None:
    if not table.height:
        return
    assert table["device_time"].sum() == device
    assert table["self_cpu_time"].sum() == host
    for own, total in (("device_time", "total_device_time"), ("self_cpu_time", "total_cpu_time")):
        assert (table[own] <= table[total]).all()
        roots = table.filter((pl.col("depth") == 0) | pl.col("path").is_null())
        if table["id"].null_count() == 1:
            assert roots[total].sum() == table[own].sum()
    passes = ["forward_cpu_time", "backward_cpu_time", "recompute_cpu_time"]
    assert table.select(pl.sum_horizontal(passes)).to_series().equals(table["total_cpu_time"])


@pytest.mark.sweep
@pytest.mark.traces
def test_own_times_add_up_in_every_trace(real: "ReadReal", real_names: list[str]) -> None:
    with_modules = 0
    for name in real_names:
        table = modules(real(name))
        with_modules += bool(table.height)
        _check(real(name), table)
    assert with_modules == 10


@pytest.mark.traces
def test_recomputation_and_reduction_of_a_real_trace(real: "ReadReal") -> None:
    """The figures were counted from the file's own events, by another program."""
    table = modules(real("mi300-2025-resnet-ddp-recompute"))

    root = table.row(0, named=True)
    assert root["name"] == "DistributedDataParallel_0"
    assert root["recompute_device_time"] == 4_209_958
    backward = dict(table.select("name", "backward_device_time").rows())
    assert backward["Conv2d_0"] == 178_582
    assert backward["Conv2d_19"] == 362_963
    assert backward["Linear_0"] == 68_431
    assert table["device_time"].sum() == 100_230_072


def test_classes_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(modules, modules(real("mi300-2025-resnet-ddp-recompute"), by="class"))
