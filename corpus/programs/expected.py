"""What the programs of `scripts/` are, as `expected.toml` says: steps, loops, phases of each."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["SCRIPTS", "Program", "Steps", "program", "programs"]

FOLDER: Final = Path(__file__).parent
SCRIPTS: Final = FOLDER / "scripts"

KINDS: Final = {"training", "inference", "token", "batch", "step"}
"""What the steps of a program may be; `step` where they neither train nor call a model."""

PARTS: Final = {
    *("imports", "data", "first_batch", "compile", "steps", "data_wait", "evaluation"),
    *("checkpoint", "epoch_boundary", "logging", "processes", "end", "other"),
}
"""Parts of the run that a phase may be."""


@dataclass(frozen=True, slots=True)
class Steps:
    """One kind of steps of a program: the loop whose iterations they are, and how many."""

    kind: str
    count: int
    """Iterations in the whole run, of each process that makes them."""
    loop: str | None = None
    """The source text of the line of the `for` or `while`; None where a library has the loop."""
    call: str | None = None
    """The source text of the statement that calls the library's loop."""
    line: str | None = None
    """The source text of the loop's line where the clock cannot mark the loop, as in a cell."""
    loads: bool = False
    """Whether the `for` iterates over a DataLoader."""
    rounds: int = 1
    """How many iterations of the loop make one step, as where gradients are accumulated."""
    skipped: int = 0
    """How many iterations pass before the first that is a step."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program of `scripts/`."""

    name: str
    about: str
    """What it is, in a few words."""
    command: tuple[str, ...]
    """What follows `selftime run`, in a copy of `scripts/`."""
    files: tuple[str, ...]
    """Its files, relative to `scripts/`."""
    steps: tuple[Steps, ...]
    """Empty where nothing repeats."""
    phases: dict[str, tuple[str, ...]]
    """The source texts of statements by the part of the run that they are."""
    processes: int = 1
    """How many processes make the steps."""
    status: int = 0
    """Its exit status."""
    says: str | None = None
    """What selftime must say of a program without steps; a regular expression."""

    def sources(self) -> dict[str, str]:
        """The source text of each of its files."""
        return {file: (SCRIPTS / file).read_text(encoding="utf-8") for file in self.files}

    def line_of(self, text: str) -> tuple[str, int]:
        """The file and number of the first line with this source text."""
        for file, source in self.sources().items():
            for number, line in enumerate(source.splitlines(), 1):
                if line.strip() == text:
                    return file, number
        raise SystemExit(f"`{self.name}` has no line `{text}`; mend corpus/programs/expected.toml")

    def texts(self) -> set[str]:
        """Every source text that the declaration names."""
        named = {text for texts in self.phases.values() for text in texts}
        for steps in self.steps:
            named |= {text for text in (steps.loop, steps.call, steps.line) if text}
        return named


def programs() -> tuple[Program, ...]:
    told = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
    return tuple(_program(name, table) for name, table in told.items())


def program(name: str) -> Program:
    for one in programs():
        if one.name == name:
            return one
    raise SystemExit(f"`{name}` is no program of corpus/programs; see its README.md")


def _program(name: str, told: dict[str, Any]) -> Program:
    return Program(
        name=name,
        about=told["about"],
        command=tuple(told.get("command", (f"{name}.py",))),
        files=tuple(told.get("files", (f"{name}.py",))),
        steps=tuple(Steps(**steps) for steps in told.get("steps", ())),
        phases={part: tuple(texts) for part, texts in told.get("phases", {}).items()},
        processes=told.get("processes", 1),
        status=told.get("status", 0),
        says=told.get("says"),
    )
