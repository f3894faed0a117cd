"""What a recording of this machine's GPU says is what PyTorch says, and what the replay repeats."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import selftime  # noqa: E402 - only where torch is
from selftime.advice.replay import replay_of  # noqa: E402 - likewise
from selftime.advice.step_statistics import step_statistics  # noqa: E402 - likewise

pytestmark = [
    pytest.mark.torch,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]

IDENTITY = 0.01
"""The replay of the unchanged program is within 1 % of what was recorded."""


@pytest.fixture(scope="module", params=[(64, 40), (4096, 4)], ids=["host-bound", "device-bound"])
def prof(request: pytest.FixtureRequest) -> Any:
    """Training steps of many small layers, or of few large ones."""
    width, layers = request.param
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(width, width, device="cuda")
    schedule = selftime.schedule(wait=3, warmup=2, active=4, repeat=1)
    with selftime.profile(schedule=schedule, record_shapes=True) as prof:
        for _ in range(9):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            prof.step()
    torch.cuda.synchronize()
    return prof


def test_the_trace_is_good(prof: Any) -> None:
    verdicts = prof.trace().view("health")["verdict"].to_list()
    assert "unusable" not in verdicts


def test_device_times_are_torchs(prof: Any) -> None:
    own = {row.key: row.self_device_time_total for row in prof.key_averages()}
    told = torch.profiler.profile.key_averages(prof)
    theirs = {row.key: row.self_device_time_total for row in told}
    busy = {name: time for name, time in theirs.items() if time > 0}
    assert busy
    assert {name: own[name] for name in busy} == pytest.approx(busy, abs=0.001)


def test_the_replay_repeats_the_recording(prof: Any) -> None:
    trace = prof.trace()
    limits = step_statistics(trace)
    assert limits is not None
    replayed = replay_of(trace).step_time() / 1e6
    steps = trace.view("steps")["device_time"].drop_nulls().to_numpy() / 1e6
    assert np.median(steps) > 0
    assert replayed == pytest.approx(limits.mean_ms, rel=IDENTITY)
