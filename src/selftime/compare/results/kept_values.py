"""Reads what a recording keeps of the results of its program: first losses, or outputs.

The values come from a file that others may have written: what is not as it should be is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from selftime.ledger_format import UNUSED_PREFIX
from selftime.trace import Trace

_MAX_ROUNDS: Final = 64
_MAX_TENSORS: Final = 4
_MAX_ELEMENTS: Final = 128
_MAX_DTYPE_CHARACTERS: Final = 20


@dataclass(frozen=True, slots=True)
class KeptTensor:
    """Evenly spaced elements of a tensor, with the shape of the whole."""

    dtype: str
    shape: tuple[int, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class KeptRound:
    """What was kept of one backward pass, or of one outermost call of a module."""

    draws: str
    """Digest of the states of PyTorch's random generators."""
    tensors: tuple[KeptTensor, ...]


@dataclass(frozen=True, slots=True)
class KeptValues:
    """What a recording keeps of its program's results."""

    losses: Mapping[int, KeptRound] = field(default_factory=dict)
    """What the first backward passes began at, by their number from 0."""
    outputs: Mapping[int, KeptRound] = field(default_factory=dict)
    """What the first outermost calls of modules returned, likewise."""
    loss_count: int = 0
    """Number of backward passes of the whole run."""
    torch_seed: int | None = None
    deterministic: bool = False
    generators: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Digests of generators' states at the program's `start`, its `first` result and its `end`."""
    failure: str | None = None

    def rounds(self, what: Literal["losses", "outputs"]) -> Mapping[int, KeptRound]:
        """Returns the kept `losses` or `outputs`."""
        return self.losses if what == "losses" else self.outputs

    def uses_generator(self, name: str) -> bool:
        """Returns whether the program drew numbers of a generator, as far as its states tell."""
        states = [self.generators.get(when, {}).get(name, "") for when in ("first", "end")]
        return any(state and not state.startswith(UNUSED_PREFIX) for state in states)


def kept_values(trace: Trace) -> KeptValues | None:
    """Returns what a recording keeps of its program's results; None without `--results`."""
    told = trace.run.facts.get("results")
    if not isinstance(told, dict):
        return None
    failure, seed = told.get("failure"), told.get("torch_seed")
    count = told.get("loss_count")
    return KeptValues(
        losses=_rounds(told.get("losses")),
        outputs=_rounds(told.get("outputs")),
        loss_count=count if type(count) is int else 0,
        torch_seed=seed if type(seed) is int else None,
        deterministic=told.get("deterministic") is True,
        generators=_generators(told.get("generators")),
        failure=failure[:200].replace("`", "'") if isinstance(failure, str) else None,
    )


def _generators(told: object) -> dict[str, dict[str, str]]:
    if not isinstance(told, dict):
        return {}
    return {
        str(when): {str(name): str(state) for name, state in states.items()}
        for when, states in told.items()
        if isinstance(states, dict)
    }


def _rounds(told: object) -> dict[int, KeptRound]:
    found = {}
    for one in told[:_MAX_ROUNDS] if isinstance(told, list) else ():
        if not isinstance(one, dict) or type(one.get("number")) is not int:
            continue
        tensors = one.get("tensors")
        kept = map(_tensor, tensors[:_MAX_TENSORS] if isinstance(tensors, list) else ())
        found[one["number"]] = KeptRound(
            str(one.get("draws")), tuple(tensor for tensor in kept if tensor is not None)
        )
    return {number: one for number, one in sorted(found.items()) if one.tensors}


def _tensor(told: Any) -> KeptTensor | None:
    try:
        values = np.array([float(value) for value in told["values"][:_MAX_ELEMENTS]])
        shape = tuple(int(size) for size in told["shape"])
        dtype = str(told["dtype"])
        if not dtype.isidentifier() or len(dtype) > _MAX_DTYPE_CHARACTERS:
            return None
        return KeptTensor(dtype, shape, values)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
