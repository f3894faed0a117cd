import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from selftime.capture import Profile  # noqa: E402 - torch is looked for first
from selftime.capture.facts import allocator  # noqa: E402 - likewise
from selftime.capture.facts.settings import torch_compile_facts  # noqa: E402 - likewise

pytestmark = pytest.mark.torch


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell")
def test_pages_are_those_that_the_recording_touched() -> None:
    pages = 20_000
    with Profile() as prof:
        torch.ones(pages * 4096, dtype=torch.uint8)
    told = prof.facts()["allocator"]

    assert told["devices"] is None or torch.cuda.is_available()
    assert told["page_faults"] * told["page_size"] >= pages * 4096
    assert told["system_ns"] >= 0


def test_pages_are_unknown_before_a_recording() -> None:
    paging = allocator.PageFaultCounter()
    assert set(paging.fault_facts().values()) == {None}
    paging.stop_counting()
    assert set(paging.fault_facts().values()) == {None}


def test_a_device_is_asked_only_once_it_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert allocator.device_memory_stats() is None

    told = {"num_alloc_retries": 3, "num_ooms": 1, "reserved_bytes.all.peak": 5}
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda _: told)
    assert allocator.device_memory_stats() == [
        {"index": 0, "retries": 3, "failures": 1, "allocated_peak": None, "reserved_peak": 5}
    ]


def test_the_compiler_is_asked_only_if_it_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils", raising=False)
    assert torch_compile_facts() is None

    counters = {"stats": {"unique_graphs": 2}, "inductor": {"cudagraph_skips": 1}}
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters=counters))
    assert torch_compile_facts() == {"graphs": 2, "cudagraph_skips": 1}

    counters = {"stats": {}, "inductor": {}}
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters=counters))
    assert torch_compile_facts() is None
