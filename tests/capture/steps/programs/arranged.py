"""Programs that train within classes, generators, threads, closures and compiled code."""

# mypy: disable-error-code="no-untyped-call"
# `Tensor.backward` has no types, and programs call it.

import threading
from collections.abc import Callable, Iterator

import torch
from tests.capture.steps.programs.truth import At, Program, steps
from torch import nn
from torch.utils.data import DataLoader, Dataset

from selftime.capture.steps import StepSource


class Fit:
    """A trainer whose forward and backward passes are within the optimizer's step."""

    def __init__(self, net: nn.Module, at: At) -> None:
        self.net = net
        self.at = at
        self.optimizer = torch.optim.Adam(net.parameters())

    def training_step(self, batch: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self.net(batch).pow(2).mean()
        return loss

    def closure(self, batch: torch.Tensor) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            self.at("within")
            self.optimizer.zero_grad()
            loss = self.training_step(batch)
            loss.backward()
            return loss

        return run

    def validate(self, loader: "DataLoader[torch.Tensor]") -> None:
        self.net.eval()
        with torch.no_grad():
            for batch in loader:
                self.at("validating")
                self.net(batch)
        self.net.train()

    def fit(self, epochs: int) -> None:
        loader: DataLoader[torch.Tensor] = DataLoader(torch.randn(16, 4), batch_size=2)  # type: ignore[arg-type]  # a tensor is a dataset
        self.validate(loader)
        for _ in range(epochs):
            for batch in loader:
                self.at("begin")
                self.optimizer.step(self.closure(batch))
                self.at("updated")
            self.validate(loader)


@steps(StepSource.OPTIMIZER, "within", "updated")
def a_trainer_with_closures(at: At) -> None:
    Fit(nn.Linear(4, 1), at).fit(3)


@steps(StepSource.OPTIMIZER, "update", "updated")
def a_loop_in_a_generator(at: At) -> None:
    def losses() -> Iterator[float]:
        net = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        while True:
            loss = net(torch.randn(2, 4)).mean()
            loss.backward()
            at("update")
            optimizer.step()
            at("updated")
            optimizer.zero_grad()
            yield loss.item()

    for _, _ in zip(range(12), losses(), strict=False):
        at("logged")


@steps(StepSource.OPTIMIZER, "update", "updated")
def training_on_a_thread(at: At) -> None:
    def train() -> None:
        net = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(12):
            net(torch.randn(2, 4)).mean().backward()
            at("update")
            optimizer.step()
            at("updated")

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()


@steps(StepSource.OPTIMIZER, "update", "updated")
def inference_first_and_training_on_a_thread(at: At) -> None:
    net = nn.Linear(4, 1)
    with torch.no_grad():
        for _ in range(6):
            net(torch.randn(2, 4))
    training_on_a_thread.run(at)


class Engine(nn.Module):
    """A module that trains itself when it is called."""

    def __init__(self, at: At) -> None:
        super().__init__()
        self.net = nn.Linear(4, 1)
        self.at = at
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self.net(x).pow(2).mean()
        loss.backward()
        self.at("update")
        self.optimizer.step()
        self.at("updated")
        self.optimizer.zero_grad()
        return loss


@steps(StepSource.OPTIMIZER, "update", "updated")
def a_module_that_trains_itself(at: At) -> None:
    engine = Engine(at)
    for _ in range(12):
        at("begin")
        engine(torch.randn(2, 4))


class Scaled(Dataset[torch.Tensor]):
    """Calls a module on each sample."""

    def __init__(self) -> None:
        self.scale = nn.ReLU()

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> torch.Tensor:
        scaled: torch.Tensor = self.scale(torch.full((4,), float(index)))
        return scaled


@steps(StepSource.MODULE, "forward", "called", found=1)
def modules_in_the_dataset(at: At) -> None:
    net = nn.Linear(4, 4)
    for batch in DataLoader(Scaled(), batch_size=2):
        at("forward")
        net(batch)
        at("called")


@steps(StepSource.OPTIMIZER, "update", "updated")
def a_compiled_model(at: At) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model = torch.compile(net, backend="aot_eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(12):
        model(torch.randn(2, 4)).sum().backward()
        at("update")
        optimizer.step()
        at("updated")
        optimizer.zero_grad()


@steps(StepSource.MODULE, "forward", "called", found=1)
def a_compiled_model_infers(at: At) -> None:
    model = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend="aot_eager")
    with torch.no_grad():
        for _ in range(12):
            at("forward")
            model(torch.randn(2, 4))
            at("called")


PROGRAMS = [one for one in list(globals().values()) if isinstance(one, Program)]
