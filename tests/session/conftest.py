"""Programs of many kinds, each recorded once by the profiler that both tables come from."""

# torch's own calls are partly untyped.
# mypy: disable-error-code="no-untyped-call, no-any-return"

import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F  # noqa: N812 - likewise; torch's own habit
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import selftime
from selftime.capture.profiler.profiler_options import is_config_option_supported


class Program(NamedTuple):
    """What runs under the recorder, given the profiler to call `step()` on; and its options."""

    run: Callable[[Any], None]
    options: dict[str, Any]


class Recording(NamedTuple):
    """A finished recording and the program's name."""

    name: str
    profiler: Any


def forward(_: Any) -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
    images = torch.randn(4, 3, 32, 32)
    nn.Linear(8 * 30 * 30, 10)(model(images))
    torch.cat([images, images])
    torch.linalg.svd(torch.randn(20, 20))


def training(prof: Any) -> None:
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randn(16, 32)), torch.randint(0, 10, (16,)))
        loss.backward()
        optimizer.step()
        prof.step()


def _load(workers: int) -> None:
    samples = TensorDataset(torch.randn(64, 3), torch.randint(0, 2, (64,)))
    model = nn.Linear(3, 2)
    for rows, labels in DataLoader(samples, batch_size=16, num_workers=workers):
        F.cross_entropy(model(rows), labels).backward()


def loading(_: Any) -> None:
    _load(0)


def loading_with_workers(_: Any) -> None:
    _load(2)


def threads(_: Any) -> None:
    def multiply() -> None:
        for _ in range(5):
            torch.mm(torch.randn(50, 50), torch.randn(50, 50))

    others = [threading.Thread(target=multiply) for _ in range(3)]
    for other in others:
        other.start()
    multiply()
    for other in others:
        other.join()


def _ones(count: int) -> torch.Tensor:
    return torch.ones(count)


def _ones_elsewhere(count: int) -> torch.Tensor:
    return torch.jit.wait(torch.jit.fork(_ones, count))


with warnings.catch_warnings():  # the one way to run operators on another thread of the recording
    warnings.simplefilter("ignore")
    _scripted = torch.jit.script(_ones_elsewhere)


_kept: list[torch.Tensor] = []


def waiting(_: Any) -> None:
    with selftime.record_function("wait"):
        _kept.append(_scripted(1000))
        time.sleep(0.05)  # the other thread hands its result over before it leaves the operator


def nested(_: Any) -> None:
    with selftime.record_function("outer"), selftime.record_function("inner"):
        torch.randn(10).add(1)
        with selftime.record_function("between"), selftime.record_function("inner"):
            torch.ones(3).mul(2)
        with selftime.record_function("inner"):
            torch.ones(4).mul(2)


def recurrent(_: Any) -> None:
    model = nn.LSTM(8, 16, 2, batch_first=True)
    model(torch.randn(4, 12, 8))[0].sum().backward()


@torch.no_grad()
def inference(_: Any) -> None:
    model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    model(torch.randn(2, 5, 16)).sum().item()
    torch.mm(torch.randn(30, 40), torch.randn(40, 50))
    F.conv2d(torch.randn(1, 3, 16, 16), torch.randn(4, 3, 3, 3))


def _config(**choices: Any) -> Any:
    """Torch's options, without those that this release lacks."""
    known = {name: value for name, value in choices.items() if is_config_option_supported(name)}
    return torch._C._profiler._ExperimentalConfig(**known)


EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True}

PROGRAMS = {
    "forward": Program(forward, {"record_shapes": True}),
    "training": Program(training, {"profile_memory": True}),
    "loading": Program(loading, {"record_shapes": True, "profile_memory": True}),
    "loading with workers": Program(loading_with_workers, {}),
    "threads": Program(
        threads,
        {"record_shapes": True, "experimental_config": _config(profile_all_threads=True)},
    ),
    "waiting for a thread": Program(waiting, {"profile_memory": True}),
    "nested": Program(nested, {"profile_memory": True}),
    "recurrent": Program(recurrent, {"record_shapes": True, "profile_memory": True}),
    "inference": Program(inference, {"with_flops": True}),
    "overloads": Program(
        training, {"experimental_config": _config(verbose=True, capture_overload_names=True)}
    ),
    "forward, everything": Program(
        forward, {**EVERYTHING, "with_flops": True, "experimental_config": _config(verbose=True)}
    ),
    "training, everything": Program(
        training,
        {**EVERYTHING, "experimental_config": _config(verbose=True, capture_overload_names=True)},
    ),
    "loading, everything": Program(
        loading, {**EVERYTHING, "experimental_config": _config(verbose=True)}
    ),
    "recurrent, stacks": Program(
        recurrent, {"with_stack": True, "experimental_config": _config(verbose=True)}
    ),
}


_RECORDED: dict[str, Recording] = {}


def _record(name: str) -> Recording:
    """Each program is recorded once."""
    if name not in _RECORDED:
        program = PROGRAMS[name]
        torch.manual_seed(0)
        with warnings.catch_warnings(), selftime.profile(**program.options) as prof:
            warnings.filterwarnings("ignore", "prof.step.. marks no step without a schedule")
            program.run(prof)
        _RECORDED[name] = Recording(name, prof)
    return _RECORDED[name]


@pytest.fixture(scope="session", params=PROGRAMS)
def recording(request: pytest.FixtureRequest) -> Recording:
    """Every program, one after the other."""
    return _record(request.param)


@pytest.fixture
def recordings() -> Callable[[str], Recording]:
    """A program by name."""
    return _record
