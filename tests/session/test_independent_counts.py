"""Numbers of views against counts that a program or plain Python makes by itself."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns, sleep
from typing import Any, Final

import polars as pl
import pytest

import selftime

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]
torch: Any = pytest.importorskip("torch")

CLOCKS_NS: Final = 100_000
"""Largest difference between the clock of a program and that of the recorder in a step."""


def test_memory_is_what_the_records_add_up_to(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    with selftime.profile(profile_memory=True) as prof:
        kept = [net(torch.randn(32, 64)) for _ in range(3)]
        kept[0].sum().backward()
        del kept
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    told = sorted((one for one in events if one["name"] == "[memory]"), key=lambda one: one["ts"])
    records = [one["args"] for one in told]
    allocated = [one["Bytes"] for one in records if one["Bytes"] > 0]
    assert len(allocated) > 9

    trace = prof.trace()
    blocks = trace.view("memory_events").filter(pl.col("allocated").is_not_null())
    assert Counter(blocks["size"].to_list()) == Counter(allocated)
    released = blocks["released"].is_not_null().sum()
    assert released <= sum(one["Bytes"] < 0 for one in records)
    # Torch counts blocks that other recordings of this process left, unless they are freed here.
    first_events = {one["Addr"]: one["Bytes"] for one in reversed(records)}
    older = -sum(size for size in first_events.values() if size < 0)
    left = records[0]["Total Allocated"] - records[0]["Bytes"] - older
    most = max(one["Total Allocated"] for one in records) - left
    assert trace.view("memory_curve", points=0)["allocated"].max() == most
    assert trace.view("memory_peak")["bytes"].sum() == most


class Twice(torch.nn.Module):  # type: ignore[misc]  # torch is optional
    """Calls a layer of its own twice, and one that others have too."""

    def __init__(self, shared: Any) -> None:
        super().__init__()
        self.own, self.shared = torch.nn.Linear(512, 512), shared

    def forward(self, rows: Any) -> Any:
        return self.shared(self.own(self.own(rows)))


@pytest.mark.parametrize("is_recomputed", [False, True], ids=["plain", "recomputed"])
def test_modules_are_called_as_often_as_hooks_are(*, is_recomputed: bool) -> None:
    checkpoint: Any = pytest.importorskip("torch.utils.checkpoint").checkpoint
    shared = torch.nn.Linear(512, 512)
    net = torch.nn.Sequential(Twice(shared), Twice(shared))
    calls, spent, begun = Counter[str](), Counter[str](), list[int]()

    def begin(*_: Any) -> None:
        begun.append(perf_counter_ns())

    def end(module: Any, *_: Any) -> None:
        spent[type(module).__name__] += perf_counter_ns() - begun.pop()
        calls[type(module).__name__] += 1

    for module in net.modules():
        module.register_forward_pre_hook(begin)
        module.register_forward_hook(end, always_call=True)
    rows = torch.randn(256, 512, requires_grad=True)
    with selftime.profile(with_stack=True, with_modules=True) as prof:
        for _ in range(2):
            made = checkpoint(net, rows, use_reentrant=False) if is_recomputed else net(rows)
            made.sum().backward()
    table = prof.trace().view("modules").filter(pl.col("class").is_not_null())
    found = table.group_by(pl.col("class").cast(pl.String)).agg(
        (pl.col("calls") + pl.col("recomputes").fill_null(0)).sum(),
        (pl.col("forward_cpu_time") + pl.col("recompute_cpu_time").fill_null(0)).sum(),
    )
    assert {row[0] for row in found.iter_rows()} == set(calls)
    for kind, times, time in found.iter_rows():
        assert (kind, times) == (kind, calls[kind])
        # the call of a module is around its hooks
        assert 0.95 * spent[kind] <= time <= 1.5 * spent[kind]


def test_steps_take_as_long_as_the_program_measures() -> None:
    begins, ends = list[int](), list[int]()
    with selftime.profile(schedule=selftime.schedule(wait=0, warmup=1, active=4)) as prof:
        for number in range(5):
            begins.append(perf_counter_ns())
            torch.ones(64, 64) @ torch.ones(64, 64)
            sleep(0.002 * (number + 1))
            ends.append(perf_counter_ns())
            prof.step()
    steps = prof.trace().view("steps").sort("step")
    assert steps.height == 4
    for number, host_time in enumerate(steps["host_time"].to_list(), start=1):
        assert host_time >= ends[number] - begins[number] - CLOCKS_NS
        if number + 1 < len(begins):  # from the end of a call of `step` to the begin of the next
            assert host_time <= begins[number + 1] - ends[number - 1] + CLOCKS_NS


CONVOLUTIONS: Final[dict[str, Callable[[], tuple[Any, tuple[int, ...]]]]] = {
    "dilated": lambda: (torch.nn.Conv2d(4, 6, 3, dilation=2), (2, 4, 11, 13)),
    "strided 3d": lambda: (torch.nn.Conv3d(4, 6, 3, (1, 2, 2)), (2, 4, 5, 8, 9)),
    "transposed 3d": lambda: (torch.nn.ConvTranspose3d(4, 6, 2, 2), (2, 4, 3, 4, 5)),
    "one by one": lambda: (torch.nn.Conv2d(4, 6, 1, bias=False), (2, 4, 5, 7)),
    "linear": lambda: (torch.nn.Linear(8, 16), (5, 8)),
}


@pytest.mark.parametrize("needs_gradient", [False, True], ids=["of the weights", "of all"])
@pytest.mark.parametrize("layer", CONVOLUTIONS)
def test_gradients_have_the_flops_that_torch_counts(layer: str, *, needs_gradient: bool) -> None:
    flop_counter: Any = pytest.importorskip("torch.utils.flop_counter")
    module, shape = CONVOLUTIONS[layer]()
    given = torch.randn(shape, requires_grad=needs_gradient)
    with flop_counter.FlopCounterMode(display=False) as counted:
        module(given).sum().backward()
    with selftime.profile(record_shapes=True) as prof:
        module(given).sum().backward()
    table = prof.trace().view("operators").filter("tensor_core_eligible")
    assert table["self_model_flops"].sum() == counted.get_total_flops()


class Slow(torch.utils.data.Dataset):  # type: ignore[misc]  # torch is optional
    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        sleep(0.004)
        return torch.zeros(2)


def test_waits_for_batches_are_what_the_program_measures() -> None:
    waits = list[int]()
    loader = iter(torch.utils.data.DataLoader(Slow(), batch_size=1))
    with selftime.profile(schedule=selftime.schedule(wait=0, warmup=1, active=4)) as prof:
        for _ in range(5):
            begin = perf_counter_ns()
            batch = next(loader)
            waits.append(perf_counter_ns() - begin)
            batch + 1
            prof.step()
    steps = prof.trace().view("steps").sort("step")
    for wait, found in zip(waits[1:], steps["data_loading"].to_list(), strict=True):
        assert 4_000_000 <= found <= wait + CLOCKS_NS
