"""Section H of the catalogue: names that differ by version, vendor and compiler."""

from collections.abc import Callable
from random import Random

import polars as pl
from tests.ingest.rough.case import Event, case, document, kernel, op
from tests.ingest.rough.program import COUNT, PROGRAM, every, held_by_views, quiet

from selftime.trace import Trace

COLLECTIVES = (
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "rcclGenericKernel<1, false>(ncclDevComm*)",
    "HcclAllReduce",
    "hcom_allReduce__517_1_1",
    "oneccl_allreduce_large",
    "mscclKernel_Sum_float_Simple_true",
    "mscclpp::allreduce<float>",
    "nvshmemi_transfer_rma",
    "void deep_ep::intranode::dispatch<8, 768>(int4*)",
    "void vllm::cross_device_reduce_1stage<__half, 8>(RankData*)",
)


def named(name: str, **instead: object) -> list[Event]:
    """The program whose kernels have this name."""
    return [{**e, "name": name, **instead} if e["cat"] == "kernel" else e for e in PROGRAM]


def are_communication(trace: Trace) -> None:
    [row] = trace.view("overlap").iter_rows(named=True)
    assert row["compute"] == 0
    assert row["communication"] > 0
    assert set(trace.view("kernels")["class"]) == {"collective"}


@case("48", "accept", sound=COUNT, check=are_communication)
def collectives_of_every_library(_: Random) -> bytes:
    names = iter(COLLECTIVES * 5)
    return document([{**e, "name": next(names)} if e["cat"] == "kernel" else e for e in PROGRAM])


@case("48", "limit", "other kernels have similar names: `xyAllToAllFast`", sound=COUNT, check=quiet)
def a_collective_of_tomorrow(_: Random) -> bytes:
    return document(named("xyAllToAllFast"))


HOSTS = ("record_param_comms", "c10d::allreduce_", "gloo:all_reduce")


def exchanges(trace: Trace) -> None:
    [row] = trace.view("overlap").iter_rows(named=True)
    assert row["communication"] > 0


@case("48", "accept", sound=30, check=exchanges)
def collectives_on_the_host(_: Random) -> bytes:
    made = [op(n, name=HOSTS[n % 3]) for n in range(30)]
    return document(
        [{**e, "cat": "user_annotation"} if e["name"].startswith("gloo") else e for e in made]
    )


def is_shown(short: str, kind: str) -> Callable[[Trace], None]:
    """As what a kernel is shown, and of which class; its own name is kept."""

    def look(trace: Trace) -> None:
        [row] = trace.view("kernels").iter_rows(named=True)
        assert short in str(row["what"])
        assert row["class"] == kind
        assert row["count"] == 50
        kernels = trace.slices.filter(pl.col("category").cast(pl.String) == "kernel")
        assert kernels["name"].n_unique() == 1

    return look


MANGLED = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEvi"
ROCM = "Cijk_Ailk_Bljk_SB_MT128x128x8_SE_1LDSB0_APM1"


@case("49a", "accept", sound=COUNT, check=is_shown("vectorized_elementwise_kernel", "fill"))
def a_mangled_name(_: Random) -> bytes:
    return document(named(MANGLED))


@case("49a", "accept", sound=COUNT, check=is_shown("Cijk_", "gemm"))
def a_name_of_rocm(_: Random) -> bytes:
    return document(named(ROCM))


LONG = "void at::native::reduce_kernel<" + "at::detail::Array<char*, 4>, " * 140 + "512>(int)"


def is_short(trace: Trace) -> None:
    [row] = trace.view("kernels").iter_rows(named=True)
    assert len(row["what"]) < 200


@case("49b", "accept", sound=COUNT, check=is_short)
def a_template_of_four_kilobytes(_: Random) -> bytes:
    assert len(LONG) > 4_000
    return document(named(LONG))


@case("49c", "accept", sound=COUNT,
      check=is_shown("triton_poi_fused_add_relu_0", "elementwise"))  # fmt: skip
def a_generated_name(_: Random) -> bytes:
    return document(named("triton_poi_fused_add_relu_0"))


def is_one_name(name: str) -> Callable[[Trace], None]:
    def look(trace: Trace) -> None:
        kernels = trace.slices.filter(pl.col("category").cast(pl.String) == "kernel")
        assert set(kernels["name"].cast(pl.String)) == {name}
        assert trace.view("kernels")["count"].to_list() == [50]

    return look


ODD = "größe\n| 核 |\r\x1b[31m"


@case("49d", "accept", sound=COUNT, check=is_one_name(ODD))
def a_name_that_would_break_a_line(_: Random) -> bytes:
    return document(named(ODD))


@case("49e", "recover", "events without a name: shown as (no name) (50)", sound=COUNT,
      check=is_one_name("(no name)"))  # fmt: skip
def an_empty_name(_: Random) -> bytes:
    return document(named(""))


COPIES = ("Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)", "Memcpy HtoD",
          "Memcpy")  # fmt: skip


def have_directions(trace: Trace) -> None:
    table = trace.view("copies")
    rows = set(table.select("direction", "host_memory").rows())
    assert rows == {("HtoD", "pageable"), ("DtoH", "pinned"), ("HtoD", None), (None, None)}


@case("49f", "accept", sound=len(COPIES), check=have_directions)
def copies_with_and_without_direction(_: Random) -> bytes:
    args = {"device": 0, "stream": 7}
    made = [kernel(n, cat="gpu_memcpy", name=name, args=args) for n, name in enumerate(COPIES)]
    return document(made)


def are_fills(trace: Trace) -> None:
    assert trace.view("overview").filter(pl.col("metric") == "memset")["value"][0] > 0


@case("49g", "accept", sound=2, check=are_fills)
def fills(_: Random) -> bytes:
    names = ("Memset (Device)", "Memset (Unknown)")
    return document([kernel(n, cat="gpu_memset", name=name) for n, name in enumerate(names)])


def waits_for_input(trace: Trace) -> None:
    told = trace.view("overview").filter(pl.col("metric") == "data loading")
    assert told["value"][0] > 0


def loading(name: str) -> bytes:
    """A wait of this name at the begin of each step."""
    waits = [op(10 * n, cat="user_annotation", name=name, ts=998 + 100 * n, dur=4)
             for n in range(1, 5)]  # fmt: skip
    return document([*PROGRAM, *waits])


@case("50a", "accept", sound=COUNT + 4, check=waits_for_input)
def a_loader_without_workers(_: Random) -> bytes:
    return loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")


@case("50a", "accept", sound=COUNT + 4, check=waits_for_input)
def a_loader_with_workers(_: Random) -> bytes:
    return loading("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")


@case("50b", "accept", sound=COUNT + 4, check=waits_for_input)
def a_loader_of_dali(_: Random) -> bytes:
    return loading("DALIClassificationIterator.__next__")


@case("50b", "accept", sound=COUNT + 4, check=waits_for_input)
def a_loader_of_webdataset(_: Random) -> bytes:
    return loading("webdataset.pipeline")


@case("50b", "accept", sound=COUNT + 4, check=waits_for_input)
def a_loader_of_torchdata(_: Random) -> bytes:
    return loading("torchdata.nodes.Loader.__next__")


@case("50b", "accept", sound=COUNT + 4, check=waits_for_input)
def a_loader_of_lightning(_: Random) -> bytes:
    return loading("[pl][profile][_EvaluationLoop].val_next")


def is_unknown_and_not_nothing(trace: Trace) -> None:
    steps = trace.view("steps")
    assert steps["data_loading"].null_count() == steps.height


@case("50c", "limit", "slices on host and device", sound=COUNT,
      check=every(is_unknown_and_not_nothing, held_by_views(data_loading=None), quiet))  # fmt: skip
def no_word_of_a_loader(_: Random) -> bytes:
    return document(PROGRAM)
