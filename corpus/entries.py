"""What entries of the corpus say of themselves, in `corpus/<id>/meta.toml` and planted lines."""

import hashlib
import json
import random
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["FOLDER", "Entry", "Order", "Sizes", "entries", "entry"]

Device: TypeAlias = Literal["cpu", "gpu", "cpu/gpu", "2proc"]
Equivalence: TypeAlias = Literal["allclose", "statistical", "none"]
Sizes: TypeAlias = Literal["full", "dry"]
"""Sizes that are worth measuring, or the smallest that run."""

FOLDER: Final = Path(__file__).parent
HELD_OUT: Final = 0.3
"""The share of entries that nobody looks at while rules are tuned."""
_PLANTED: Final = re.compile(r"# planted:\s*(?P<label>[A-L]\d+)\s*$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One program, its repaired twin, and what must be found in it."""

    name: str
    told: dict[str, Any]

    @property
    def device(self) -> Device:
        return cast("Device", self.told["device"])

    @property
    def equivalence(self) -> Equivalence:
        return cast("Equivalence", self.told["equivalence"])

    @property
    def steps(self) -> int | None:
        """Steps of one timed run, for programs in which only every n-th step has the cost."""
        return self.told.get("steps")

    @property
    def records_times(self) -> bool:
        """Whether times come from a second recording, as those of `selftime run` do."""
        return bool(self.told.get("records_times", True))

    def labels(self, *, gpu: bool) -> tuple[str, ...]:
        """What must be found on this kind of machine."""
        return self._named("labels", gpu=gpu)

    def forbid(self, *, gpu: bool) -> frozenset[str]:
        """What must not be found on it."""
        return frozenset(self._named("forbid", gpu=gpu))

    def allow(self, *, gpu: bool) -> frozenset[str]:
        """What is true of the program as well, though its twin does not repair it."""
        return frozenset(self._named("allow", gpu=gpu))

    def _named(self, key: str, *, gpu: bool) -> tuple[str, ...]:
        """The labels under a key; on a GPU those of the key for it, where there is one."""
        anywhere = self.told.get(key, ())
        return tuple(self.told.get(f"{key}_gpu", anywhere) if gpu else anywhere)

    @property
    def twins(self) -> tuple[str, ...]:
        """`good`; then, where several causes are planted, the twins with one repair each."""
        single = [f"good_{n}" for n in range(1, len(self.told["labels"]) + 1)]
        return ("good", *(twin for twin in single if self.program(twin).is_file()))

    @property
    def is_held_out(self) -> bool:
        """Chosen by a hash of the name, so that neither luck nor taste decides."""
        digest = hashlib.sha256(self.name.encode()).digest()
        return int.from_bytes(digest[:8], "big") < HELD_OUT * 2**64

    @property
    def is_its_own_twin(self) -> bool:
        """A control with nothing to repair: runs of it against itself tell the noise of a gain."""
        return not (FOLDER / self.name / "good.py").is_file()

    def program(self, which: str) -> Path:
        is_copy = which == "good" and self.is_its_own_twin
        return FOLDER / self.name / ("bad.py" if is_copy else f"{which}.py")

    def planted(self, which: str = "bad") -> dict[int, str]:
        """The label of each line that must be named."""
        lines = self.program(which).read_text(encoding="utf-8").splitlines()
        found = ((number, _PLANTED.search(line)) for number, line in enumerate(lines, 1))
        return {number: match["label"] for number, match in found if match}

    def runs(self, *, gpu: bool) -> bool:
        return self.device != "gpu" or gpu

    def ranges(self, *, gpu: bool, sizes: Sizes = "full") -> dict[str, tuple[int, int]]:
        """Both ends of each knob; a trial without ranges of its own takes the lowest."""
        ends = dict(self.told.get("knobs", {}))
        if gpu:
            ends |= self.told.get("gpu", {})
        if sizes == "dry":
            ends = {name: (low, low) for name, (low, _) in ends.items()} | self.told.get("dry", {})
        return {name: (low, high) for name, (low, high) in ends.items()}

    def knobs(self, seed: int, *, gpu: bool, sizes: Sizes = "full") -> dict[str, int]:
        """Sizes of this seed, one for each range."""
        ranges = self.ranges(gpu=gpu, sizes=sizes)
        draw = random.Random(f"{self.name} {seed}")  # noqa: S311 - sizes, no secrets
        return {name: draw.randint(*ends) for name, ends in ranges.items()}


@dataclass(frozen=True, slots=True)
class Order:
    """One run: which program, with which sizes, and whether it is timed or recorded."""

    entry: str
    which: str
    seed: int
    record: str | None = None
    """The folder for the trace of each rank; a run without it is timed."""
    sizes: Sizes = "full"
    steps: int | None = None
    """How many to time, whatever the entry says."""
    active: int = 6
    """Steps to record."""
    with_stack: bool = True

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def entry(name: str) -> Entry:
    path = FOLDER / name / "meta.toml"
    if not path.is_file():
        raise SystemExit(f"`{name}` is no entry of the corpus; see corpus/README.md")
    return Entry(name, tomllib.loads(path.read_text(encoding="utf-8")))


def entries() -> tuple[Entry, ...]:
    return tuple(entry(path.parent.name) for path in sorted(FOLDER.glob("*/meta.toml")))
