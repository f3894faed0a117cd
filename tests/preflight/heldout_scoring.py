"""Scores preflight against labelled programs; `python -m tests.preflight.heldout_scoring` tells."""

import ast
import contextlib
import io
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Final, Literal

from tests.preflight.heldout_cases import (
    agents,
    algebra,
    corners,
    decoding,
    detection,
    domains,
    further,
    graphs,
    layers,
    losses,
    metrics,
    movement,
    protocols,
    pytorch_own,
    spellings,
    training,
    whole,
)

from selftime.capture.preflight import preflight

__all__ = ["MODULES", "Score", "score"]

MODULES: Final = (
    metrics,
    losses,
    decoding,
    detection,
    graphs,
    agents,
    movement,
    training,
    layers,
    algebra,
    protocols,
    pytorch_own,
    spellings,
    whole,
    corners,
    further,
    domains,
)

_LABEL: Final = re.compile(r"# waits: (\w+(?:, \w+)*)$")

Direction = Literal["waits", "uploads"]


@dataclass(frozen=True, order=True)
class Place:
    """A line that blocks, and whether it waits for the device or copies to it.

    An operator that waits is `sync` or `copy_to_host`: which of them is a matter of naming, and
    `item()` could be either, so that the score does not tell them apart.
    """

    program: str
    line: int
    direction: Direction


@dataclass
class Score:
    """What was found, against what is true."""

    programs: int = 0
    clean: int = 0
    """Programs in which nothing blocks."""
    right: set[Place] = field(default_factory=set)
    false: set[Place] = field(default_factory=set)
    missed: set[Place] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    """Programs that would run on a GPU, and what they raised on the simulated device."""

    @property
    def precision(self) -> float:
        return len(self.right) / max(1, len(self.right | self.false))

    @property
    def recall(self) -> float:
        return len(self.right) / max(1, len(self.right | self.missed))

    def __str__(self) -> str:
        lines = [f"false   {p.program}:{p.line} {p.direction}" for p in sorted(self.false)]
        lines += [f"missed  {p.program}:{p.line} {p.direction}" for p in sorted(self.missed)]
        lines += [f"failed  {name}: {what}" for name, what in sorted(self.failed.items())]
        lines.append(
            f"{self.programs} programs, {self.clean} clean, {len(self.failed)} failed: "
            f"{len(self.right)} right, {len(self.false)} false, {len(self.missed)} missed; "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}"
        )
        return "\n".join(lines)


def _direction(kind: str) -> Direction:
    return "uploads" if kind == "copy_to_device" else "waits"


def _programs(module: ModuleType) -> Iterator[tuple[str, set[Place]]]:
    """Each public function of a module, with the places that its labels name."""
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        name = f"{module.__name__.rpartition('.')[2]}.{node.name}"
        labels = [
            (number, label[1])
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if (label := _LABEL.search(lines[number - 1]))
        ]
        yield (
            name,
            {
                Place(name, number, _direction(kind))
                for number, kinds in labels
                for kind in kinds.split(", ")
            },
        )


def _run(module: ModuleType, name: str) -> tuple[set[Place], str | None]:
    """The places that preflight names in a program, and what the program raised."""
    file, raised = str(module.__file__), None
    with (
        preflight() as found,
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # those of the programs, as they are on a GPU
        try:
            getattr(module, name.rpartition(".")[2])()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the score tells
            raised = f"{type(error).__name__}: {error}"
    places = {
        Place(name, (site.line or 0) if site.file == file else 0, _direction(site.kind))
        for site in found.sites
    }
    return places, raised


def score(*modules: ModuleType) -> Score:
    """Run every program of the modules under preflight, and compare.

    A site that is in no line of the program counts as false, at line 0.
    """
    result = Score()
    for module in modules:
        for name, true in _programs(module):
            told, raised = _run(module, name)
            result.programs += 1
            result.clean += not true
            result.right |= told & true
            result.false |= told - true
            result.missed |= true - told
            if raised is not None:
                result.failed[name] = raised
    return result


if __name__ == "__main__":
    sys.stdout.write(f"{score(*MODULES)}\n")
