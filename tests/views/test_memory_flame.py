import pickle
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tests.ingest.test_snapshot import WHOLE

from selftime.ingest.snapshots.allocator_snapshot import read_snapshot
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.memory_flame import memory_flame
from selftime.views.memory_peak import memory_peak

if TYPE_CHECKING:
    from tests.conftest import ReadReal

US = 1_000
KIB = 1024

NESTED = """
    n = nn.Module: Linear_0; module_id = 0
    m = aten::mm
    A = a; bytes = 2048; device_type = 1; device = 0
    B = b; bytes = 1024; device_type = 1; device = 0
    python 1 | nnnnnn
    cpu 1    | mm   m
    memory 1 | A B    ab
"""


def rows(trace: Trace, **options: Any) -> list[tuple[Any, ...]]:
    """Every node with its depth: name, bytes and own bytes."""
    table = memory_flame(trace, **options)
    return table.select("depth", "name", "bytes", "self_bytes", "blocks").rows()


def test_nothing_recorded_is_no_tree() -> None:
    assert memory_flame(Trace()).is_empty()


def test_blocks_are_within_what_allocated_them() -> None:
    assert rows(sketch(NESTED)) == [
        (0, "nn.Module: Linear_0", 3 * KIB, 1 * KIB, 1),
        (1, "aten::mm", 2 * KIB, 2 * KIB, 1),
    ]
    assert rows(sketch(NESTED), at=5 * US) == [
        (0, "nn.Module: Linear_0", 2 * KIB, 0, 0),
        (1, "aten::mm", 2 * KIB, 2 * KIB, 1),
    ]


def test_lines_are_within_their_file() -> None:
    trace = sketch("""
        m = aten::mm; line = net.py:12 forward
        A = a; bytes = 2048; device_type = 1; device = 0
        B = b; bytes = 1024; device_type = 1; device = 0
        cpu 1    | mmm
        memory 1 | A  B ab
    """)

    assert rows(trace, by="line") == [
        (0, "net.py", 2 * KIB, 0, 0),
        (1, "net.py(12): forward", 2 * KIB, 0, 0),
        (2, "aten::mm", 2 * KIB, 2 * KIB, 1),
        (0, "(unknown)", 1 * KIB, 1 * KIB, 1),
    ]


def test_a_snapshot_has_the_stacks_that_it_recorded() -> None:
    trace = read_snapshot(pickle.dumps(WHOLE), "")

    table = memory_flame(trace).select("depth", "name", "bytes", "origin")
    assert table.rows() == [
        (0, "/repo/train.py(31): step", 2 * KIB, "user"),
        (0, "/lib/torch/nn/modules/module.py(9): _call_impl", 1 * KIB, "system"),
        (1, "/repo/net.py(5): forward", 1 * KIB, "user"),
    ]


@pytest.mark.traces
@pytest.mark.parametrize("by", ["stack", "module", "line"])
def test_the_roots_are_the_peak(real: "ReadReal", by: Any) -> None:
    trace = real("h100-2025-vit")
    place = ["device_type", "device", "time"]
    flame = memory_flame(trace, by=by)

    roots = flame.filter(pl.col("parent").is_null()).group_by(place).agg(pl.col("bytes").sum())
    peak = memory_peak(trace).group_by(place).agg(pl.col("bytes").sum())
    assert roots.sort(place).equals(peak.sort(place))
    assert flame["self_bytes"].sum() == peak["bytes"].sum()
