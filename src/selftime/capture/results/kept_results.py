"""Keeps the losses of a program's first backward passes, and samples of its first outputs.

A kept value is a small copy on the device of its tensor. It is read once the program has ended, so
that no device is waited for. Nothing is kept while a profiler records, since the copies would be in
the recording, nor while a CUDA graph is captured, since they would become part of it.
"""

import sys
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from selftime.capture.results.seeding import generator_states, torch_draws

MAX_KEPT_VALUES: Final = 64
"""Number of first backward passes, and of first outermost module calls, of which results are
kept."""
MAX_SAMPLED_ELEMENTS: Final = 64
"""Largest number of elements that are kept of a tensor."""
_MAX_TENSORS_OF_OUTPUT: Final = 4
"""Largest number of tensors that are kept of what a module returns."""
_MAX_DEPTH_OF_OUTPUT: Final = 4
"""Depth of tuples, lists and dicts down to which an output's tensors are looked for."""


class KeptResults:
    """Holds small copies of what a program computes first; its own work is none of the program."""

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._losses: list[tuple[int, Any, str]] = []
        """(number of the backward pass, copies, digest of the generators' states)."""
        self._outputs: list[tuple[int, Any, str]] = []
        self._loss_count = self._output_count = 0
        self._at_start = generator_states()
        self._at_first: dict[str, str] | None = None
        self._torch_seed: int | None = None

    def add_loss(self, tensors: Any) -> None:
        """Keeps what a backward pass begins at."""
        self._loss_count += 1
        if self._loss_count <= MAX_KEPT_VALUES:
            self._add(self._losses, self._loss_count - 1, tensors)

    def add_output(self, output: Any) -> None:
        """Keeps samples of what an outermost module call has returned."""
        self._output_count += 1
        if self._output_count <= MAX_KEPT_VALUES:
            self._add(self._outputs, self._output_count - 1, output)

    def _add(self, kept: list[tuple[int, Any, str]], number: int, value: Any) -> None:
        torch: Any = sys.modules["torch"]
        if self._at_first is None:
            self._at_first = generator_states()
            self._torch_seed = torch.initial_seed()
        if torch.autograd.profiler._is_profiler_enabled or _is_capturing(torch):  # noqa: SLF001 - no public name
            return
        with torch.no_grad():
            copies = [_sampled(tensor) for tensor in _plain_tensors(value, torch)]
        if copies:
            kept.append((number, copies, torch_draws()))

    def facts(self) -> Mapping[str, Any]:
        """Returns as JSON values what was kept; waits for the device, so at the program's end."""
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return {}
        facts = {
            "seed": self._seed,
            "torch_seed": self._torch_seed,
            "generators": {
                "start": self._at_start,
                "first": self._at_first or {},
                "end": generator_states(),
            },
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "loss_count": self._loss_count,
            "output_count": self._output_count,
        }
        try:
            return {
                **facts,
                "losses": [_as_json(one) for one in self._losses],
                "outputs": [_as_json(one) for one in self._outputs],
            }
        except RuntimeError as error:  # such as of a device that has failed
            return {**facts, "failure": f"{type(error).__name__}: {error}"[:200]}


def _is_capturing(torch: Any) -> bool:
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def _plain_tensors(value: Any, torch: Any) -> list[Any]:
    """Returns the first tensors in a value; those of subclasses, or within `vmap`, are left out."""
    plain = (torch.Tensor, torch.nn.Parameter)
    return [
        tensor
        for tensor in list(_tensors(value, torch, _MAX_DEPTH_OF_OUTPUT))[:_MAX_TENSORS_OF_OUTPUT]
        if type(tensor) in plain
        and tensor.layout is torch.strided
        and not tensor.is_quantized
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # noqa: SLF001 - no public name
    ]


def _tensors(value: Any, torch: Any, depth: int) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, list | tuple | dict):
        for inner in list(value.values() if isinstance(value, dict) else value)[:MAX_KEPT_VALUES]:
            yield from _tensors(inner, torch, depth - 1)


def _sampled(tensor: Any) -> tuple[Any, list[int]]:
    """Returns (copy of evenly spaced elements of a tensor, its shape); the layout plays no part."""
    shape, left, view = list(tensor.shape), MAX_SAMPLED_ELEMENTS, tensor.detach()
    for place, axis in enumerate(sorted(range(len(shape)), key=shape.__getitem__)):
        size = shape[axis]
        count = min(size, max(1, int(left ** (1 / (len(shape) - place)) + 1e-9)))
        if count < size:
            step = size // count
            view = view.narrow(axis, 0, (count - 1) * step + 1)
            view = view[(slice(None),) * axis + (slice(None, None, step),)]
        left //= max(1, count)
    return view.clone(), shape


def _as_json(kept: tuple[int, list[tuple[Any, list[int]]], str]) -> dict[str, Any]:
    number, copies, draws = kept
    return {"number": number, "draws": draws, "tensors": [_tensor_as_json(*one) for one in copies]}


def _tensor_as_json(copy: Any, shape: list[int]) -> dict[str, Any]:
    dtype = str(copy.dtype).removeprefix("torch.")
    if copy.is_complex():
        copy = copy.resolve_conj().view(copy.real.dtype)
    values = (copy.double() if copy.is_floating_point() else copy.long()).flatten().tolist()
    return {"dtype": dtype, "shape": shape, "values": [_number_as_json(value) for value in values]}


def _number_as_json(value: float) -> float | str:
    """Returns a number; what JSON has no number for as a text: `nan`, `inf` or `-inf`."""
    return value if isfinite(value) else str(value)
