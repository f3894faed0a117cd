"""Collectives of one rank: what is summed, and the bandwidths of what tells its size."""

from collections.abc import Callable

import pytest

from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.collectives import collectives

DRAWN = """
    mark 1   | ssssssssssttttttttttttttttttt
    cpu 1    | aa  bb    cc       aa
    call 1   |  k l       m      k l
    gpu 7    |   kkkkkk           k
    gpu 20   |     nnnnnn  mm      nnnn
    s = ProfilerStep#7
    t = ProfilerStep#8
    n = ncclDevKernel_AllReduce; launched_by = l; collective = allreduce; dtype = Float; \
in_elements = 15000; out_elements = 15000; group = 0; group_size = 4
    m = ncclDevKernel_AllGather; collective = _allgather_base; dtype = BFloat16; \
in_elements = 100; out_elements = 400; group = 3; group_size = 4
"""


def test_by_kind_and_group() -> None:
    table = collectives(sketch(DRAWN))
    reduced, gathered = table.iter_rows(named=True)
    assert (reduced["collective"], reduced["group"], reduced["count"]) == ("allreduce", "0", 2)
    assert (reduced["bytes"], reduced["time"]) == (120_000, 100_000)
    assert reduced["algorithm_bandwidth"] == pytest.approx(1.2)
    assert reduced["bus_bandwidth"] == pytest.approx(1.2 * 2 * 3 / 4)
    assert reduced["fastest"] == pytest.approx(1.5 * 60_000 / 40_000)
    assert reduced["exposed"] == 20_000 + 40_000
    assert reduced["hidden"] == pytest.approx(0.4)
    assert (reduced["shortest"], reduced["slowest"]) == (40_000, 60_000)
    assert reduced["step"] is None
    assert (gathered["bytes"], gathered["bus_bandwidth"]) == (800, pytest.approx(0.04 * 3 / 4))


def test_each_by_itself_in_its_step() -> None:
    table = collectives(sketch(DRAWN), by="collective")
    assert table["step"].to_list() == [7, 8, 8]
    assert table["count"].to_list() == [1, 1, 1]
    assert collectives(sketch(DRAWN), by="step").height == 3


def test_by_size() -> None:
    table = collectives(sketch(DRAWN), by="size")
    assert table.select("size", "count", "bytes").rows() == [(60_000, 2, 120_000), (800, 1, 800)]


def test_what_is_not_told_is_unknown() -> None:
    row = collectives(sketch("gpu 20 | nn\nn = ncclKernel_AllReduce")).row(0, named=True)
    assert row["collective"] == "allreduce"
    for column in ("bytes", "bus_bandwidth", "algorithm_bandwidth", "group", "smallest"):
        assert row[column] is None, column
    assert row["without_bytes"] == 1


def test_on_a_host_nothing_is_known_to_hide_it() -> None:
    row = collectives(sketch("mark 2 | gggg\ng = gloo:all_reduce")).row(0, named=True)
    assert (row["exposed"], row["hidden"], row["time"]) == (None, None, 40_000)


def test_top() -> None:
    assert collectives(sketch(DRAWN), top=1)["collective"].to_list() == ["allreduce"]
    with pytest.raises(UsageError, match="top"):
        collectives(sketch(DRAWN), top=-1)


@pytest.mark.traces
def test_the_real_one_of_two_ranks(real: Callable[[str], Trace]) -> None:
    table = collectives(real("a100-2024-nccl-2ranks"))
    row = table.row(0, named=True)
    assert (row["collective"], row["group_size"]) == ("allreduce", 2)
    assert table["count"].sum() == 21
    assert 0 < row["bus_bandwidth"] <= row["fastest"] < 400
