"""Seeds the random generators of a program, and says in which state they are."""

import hashlib
import random
import sys
from typing import Any, Final

from selftime.capture.program.after_import import after_import
from selftime.ledger_format import UNUSED_PREFIX

_DIGEST_BYTES: Final = 8
"""Size of the digest of a generator's state, in bytes."""


_FRESH_POSITION: Final = 623
"""Least position in the state of a Mersenne Twister that nothing was drawn from since it was
seeded: NumPy's begins at 623, and at 624 once a program seeds it, as Python's does."""
_seeded: Final[list[int]] = []
"""The seed, once the generators of this process, or of the one it was forked from, have it."""


def seed_generators(seed: int) -> None:
    """Seeds the generators of `random`, and of NumPy and PyTorch once they are imported.

    A process that was forked from one that was seeded goes on from where that was.
    """
    if _seeded:
        return
    _seeded.append(seed)
    random.seed(seed)
    after_import("numpy", lambda: _seed_numpy(seed))
    after_import("torch", lambda: _seed_torch(seed))


def _seed_numpy(seed: int) -> None:
    sys.modules["numpy"].random.seed(seed % (1 << 32))


def _seed_torch(seed: int) -> None:
    sys.modules["torch"].manual_seed(seed)


def generator_states() -> dict[str, str]:
    """Returns a digest of the state of each generator, by the module it belongs to.

    One that nothing was drawn from since it was seeded has `UNUSED_PREFIX` before it.
    """
    state = random.getstate()
    states = {"random": _digest(state, is_unused=state[1][-1] >= _FRESH_POSITION)}
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        _, key, position, *gauss = numpy.get_state(legacy=True)
        is_unused = position >= _FRESH_POSITION and not gauss[0]
        states["numpy"] = _digest((key.tobytes(), position, gauss), is_unused=is_unused)
    return states


def torch_draws() -> str:
    """Returns a digest of the states of PyTorch's generators; no device is waited for."""
    torch: Any = sys.modules["torch"]
    states = [torch.get_rng_state().numpy().tobytes()]
    if torch.cuda.is_initialized():
        states += [torch.cuda.get_rng_state().numpy().tobytes()]
    return _digest(states)


def _digest(state: object, *, is_unused: bool = False) -> str:
    digest = hashlib.blake2b(repr(state).encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return UNUSED_PREFIX + digest if is_unused else digest
