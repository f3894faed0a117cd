"""Programs that only infer."""

import warnings

import torch
from tests.capture.steps.programs.truth import At, Program, steps
from torch import nn
from torch.utils.data import DataLoader

from selftime.capture.steps import StepSource


class Decoder(nn.Module):
    """Makes one token after the other, as language models do."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.head = nn.Linear(8, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = torch.relu(layer(x))
        logits: torch.Tensor = self.head(x)[:, -1]
        return logits

    @torch.no_grad()
    def generate(self, at: At, prompt: torch.Tensor, count: int) -> None:
        at("prompt")
        token = self(prompt).argmax(-1, keepdim=True)
        at("called")
        for _ in range(count):
            at("token")
            token = self(token).argmax(-1, keepdim=True)
            at("called")


@steps(StepSource.MODULE, "forward", "called", found=1)
def one_module(at: At) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with torch.inference_mode():
        for _ in range(12):
            at("forward")
            net(torch.randn(2, 4))
            at("called")


@steps(StepSource.MODULE, "first", "second", found=1)
def several_modules(at: At) -> None:
    encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 4)
    with torch.no_grad():
        for _ in range(12):
            at("first")
            x = encoder(torch.randn(2, 4))
            at("second")
            decoder(x)


@steps(StepSource.MODULE, "first", "second", found=1)
def one_module_twice(at: At) -> None:
    net = nn.Linear(4, 8)
    with torch.no_grad():
        for _ in range(12):
            at("first")
            one = net(torch.randn(2, 4))
            at("second")
            two = net(torch.randn(2, 4))
            one @ two.T


@steps(StepSource.MODULE, "denoise", "denoised", found=1)
def denoising(at: At) -> None:
    text, denoiser, image = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 16)
    with torch.no_grad():
        for _ in range(1):
            x = text(torch.randn(2, 4))
            for _ in range(20):
                at("denoise")
                x = denoiser(x)
                at("denoised")
            image(x)


@steps(StepSource.MODULE, "token", "called", found=1)
def tokens_of_one_prompt(at: At) -> None:
    Decoder().generate(at, torch.zeros(1, 7, dtype=torch.long), 12)


@steps(StepSource.MODULE, "denoise", "denoised")
def an_optimizer_that_is_never_used(at: At) -> None:
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with torch.no_grad():
        net(torch.randn(2, 4))
        for number in range(12):
            at("denoise" if number else "first")
            net(torch.randn(2, 4))
            at("denoised")
    assert optimizer.param_groups


@steps(StepSource.MODULE, "forward", "called", found=4)
def measured_after_a_warm_up(at: At) -> None:
    net = nn.Linear(4, 4)
    with torch.no_grad():
        for _ in range(3):
            at("forward")
            net(torch.randn(2, 4))
            at("called")
        for _ in range(12):
            at("forward")
            net(torch.randn(2, 4))
            at("called")


@steps(StepSource.MODULE, "forward", "called", found=1)
def a_script_module(at: At) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # deprecated, and still in use
        net = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    with torch.no_grad():
        for _ in range(12):
            at("forward")
            net(torch.randn(2, 4))
            at("called")


class Writer(nn.Module):
    """Decodes within its forward."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 8)
        self.decoder = Decoder()

    def forward(self, at: At, count: int) -> None:
        self.encoder(torch.randn(1, 8))
        token = torch.zeros(1, 1, dtype=torch.long)
        for _ in range(count):
            at("token")
            token = self.decoder(token).argmax(-1, keepdim=True)
            at("called")


@steps(StepSource.NESTED_MODULE, "token", "called", found=10)
def decoding_within_forward(at: At) -> None:
    with torch.no_grad():
        Writer()(at, 30)


@steps(StepSource.NESTED_MODULE, "token", "called", found=10)
def decoding_within_a_pipeline(at: At) -> None:
    class Pipeline(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.writer = Writer()

        def forward(self, at: At) -> None:
            self.writer(at, 30)

    with torch.no_grad():
        Pipeline()(at)


@steps(StepSource.MODULE, "forward", "called", found=12)
def a_cell_for_each_moment(at: At) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            at("called")
            state = torch.zeros(2, 4)
            for moment in x.unbind(1):
                state = self.cell(moment, state)
            return state

    net = Recurrent()
    with torch.no_grad():
        for _ in range(20):
            at("forward")
            net(torch.randn(2, 30, 4))


@steps(StepSource.DATALOADER, "asked", "batch", found=3)
def statistics_of_batches(at: At) -> None:
    batches = iter(DataLoader(torch.randn(24, 4), batch_size=2))  # type: ignore[arg-type]  # a tensor is a dataset
    for _ in range(12):
        at("asked")
        batch = next(batches)
        at("batch")
        batch.mean().item()


PROGRAMS = [one for one in list(globals().values()) if isinstance(one, Program)]
