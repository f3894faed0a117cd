"""Views that state the same quantity state the same number, on real traces, drawings and jobs."""

from functools import cache

import pytest
from tests.conftest import FOLDER, ReadReal
from tests.views.agreement import Asked, differences
from tests.views.agreement_of_devices import OF_DEVICES
from tests.views.agreement_of_memory import OF_MEMORY
from tests.views.agreement_of_ranks import OF_RANKS
from tests.views.agreement_of_steps import OF_STEPS
from tests.views.test_lines import BACKWARD, REDUCED, STACKS, STEP
from tests.views.test_stragglers import read

from selftime.testing import sketch
from selftime.testing.simulated_jobs import RankDelay, SimulatedMachine, simulate_job
from selftime.trace import Job

OF_TRACE = (*OF_DEVICES, *OF_STEPS, *OF_MEMORY)
REAL = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))
KNOWN = "mi300-2025-resnet-ddp-recompute"
"""The trace on which views disagreed: gradients are reduced on autograd's own thread."""

MEMORY = """
    a = aten::empty; line = net.py:5 f
    b = aten::add; line = net.py:6 f
    K = one; bytes = 512; device_type = 1; device = 0
    T = two; bytes = 256; device_type = 1; device = 0
    H = host; bytes = 64; device_type = 0; device = -1
    cpu 1    | aaaa bbbb
    memory 1 | KTt   H   k
"""
OVERLONG = """
    s = ProfilerStep#1
    a = aten::mm; line = net.py:5 f
    y = cudaDeviceSynchronize
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | aaaaaaaaaa
    call 1 | k k k k k yyy
    gpu 7  |  k k k k kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    column = 1 ms
"""
DRAWINGS = {
    "steps": STEP,
    "stacks": STACKS,
    "backward": BACKWARD,
    "reduced": REDUCED,
    "memory": MEMORY,
    "overlong": OVERLONG,
}


@pytest.mark.traces
@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", REAL)
def test_views_agree_on_a_real_trace(real: ReadReal, name: str) -> None:
    assert not differences(Asked(real(name)), OF_TRACE)


@pytest.mark.traces
def test_views_agree_where_gradients_are_reduced(real: ReadReal) -> None:
    """Line 82 calls `backward`: what is reduced within costs it 67.6 ms in every view."""
    ask = Asked(real(KNOWN))
    assert not differences(ask, OF_DEVICES)
    assert ask("lines").rows_by_key("line", named=True)[82][0]["device_time"] == 67_563_897


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_views_agree_on_a_drawing(drawing: str) -> None:
    assert not differences(Asked(sketch(drawing)), OF_TRACE)


@cache
def job(name: str) -> Job:
    late, noisy = RankDelay(1, 8_000_000, "data"), SimulatedMachine(noise=0.05, jitter=2_000)
    ran = {
        "two ranks": lambda: simulate_job(ranks=2, steps=5, late=late),
        "varying arrivals": lambda: simulate_job(ranks=4, steps=6, machine=noisy),
        "a slow device": lambda: simulate_job(
            ranks=4, steps=5, late=RankDelay(1, 8_000_000, "compute")
        ),
    }
    return read(ran[name]().traces)


@pytest.mark.parametrize("name", ["two ranks", "varying arrivals", "a slow device"])
def test_views_agree_on_a_job(name: str) -> None:
    assert not differences(Asked(job(name)), OF_RANKS)


@pytest.mark.parametrize("name", ["two ranks", "a slow device"])
def test_views_agree_on_each_rank_of_a_job(name: str) -> None:
    for trace in job(name).traces.values():
        assert not differences(Asked(trace), OF_TRACE)
