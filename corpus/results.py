"""What the advice said of one program, beside what is true of it."""

import ast
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from entries import Entry
from measuring import Gain, Pair, Runner, recorded

import selftime
from selftime.advice import advise
from selftime.advice.rule_definition import Finding
from selftime.advice.savings.finding_overlap import saved_together_ms
from selftime.advice.verify import MeasuredSaving, Verification, predicted_saving
from selftime.reports.advice.account_sentence import account_sentence

__all__ = ["Prediction", "Result", "judged"]

Line: TypeAlias = Literal["exact", "function", "none"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was promised for one repair, and what the repair gave."""

    findings: tuple[Finding, ...]
    estimate_ms: float
    gain: Gain

    @property
    def is_within(self) -> bool | None:
        """Whether the gain lies in the promised interval; several findings have none of theirs."""
        if len(self.findings) != 1:
            return None
        saving = self.findings[0].saving
        low, high = saving.low_ms, saving.high_ms
        return None if low is None or high is None else low <= self.gain.saved_ms <= high

    @property
    def is_above(self) -> bool | None:
        """Whether the gain is surely more than what the finding called the most."""
        upper = self.findings[0].saving.upper_ms if len(self.findings) == 1 else None
        return None if upper is None else self.gain.low_ms > upper


@dataclass(frozen=True, slots=True)
class Result:
    """One entry with the sizes of one seed."""

    about: Entry
    seed: int
    gpu: bool
    pair: Pair | None
    """None if nothing was timed."""
    findings: tuple[Finding, ...]
    together_ms: dict[str, float | None]
    """What the findings of each twin's repair save together, in one replay."""
    joint_ms: float | None
    """What the advice promises for all its findings."""
    first_line: str | None
    """The sentence that says what bounds the step; None where no step is known."""

    @property
    def labels(self) -> tuple[str, ...]:
        return self.about.labels(gpu=self.gpu)

    @property
    def found(self) -> frozenset[str]:
        return frozenset(label for finding in self.findings for label in finding.covers)

    def hits(self, label: str | None = None) -> tuple[Finding, ...]:
        """Findings of that label, or of any that is planted."""
        wanted = set(self.labels) if label is None else {label}
        return tuple(f for f in self.findings if wanted & set(f.covers))

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """Findings of what is neither planted nor known to be true of the program as well."""
        true = {*self.labels, *self.about.allow(gpu=self.gpu)}
        return tuple(f for f in self.findings if not true & set(f.covers))

    @property
    def forbidden(self) -> frozenset[str]:
        """What was found and must not be."""
        return self.found & self.about.forbid(gpu=self.gpu)

    @property
    def gain(self) -> Gain | None:
        return None if self.pair is None else self.pair.gain()

    def line(self, label: str) -> Line | None:
        """How well a finding of this label names the planted line; None if there is no finding."""
        planted = self.about.planted()
        lines = {n for n, found in planted.items() if found == label} or set(planted)
        places = [finding.where for finding in self.hits(label)]
        if not places or not lines:
            return None
        program = self.about.program("bad")
        inside = [w for w in places if w.file and Path(w.file).name == program.name]
        if any(where.line in lines for where in inside):
            return "exact"
        functions = {function(program, line) for line in lines}
        return "function" if any(_last(w.function) in functions for w in inside) else "none"

    def repairs(self) -> dict[str, tuple[Finding, ...]]:
        """The findings that each twin repairs."""
        return repairs(self.about, self.labels, self.findings)

    def predictions(self) -> Iterator[Prediction]:
        """One for each cause whose repair surely gave something and was given a number."""
        for twin, hits in self.repairs().items():
            estimate = self.together_ms[twin]
            if self.pair is not None and estimate:
                gained = self.pair.gain(twin)
                if gained.is_sure and gained.saved_ms > 0:
                    yield Prediction(hits, estimate, gained)

    def verification(self) -> Verification | None:
        """In the form in which `selftime verify --keep` stores what a repair achieved."""
        if self.pair is None or not self.labels:
            return None
        gained, hits = self.pair.gain(), self.hits()
        achieved = MeasuredSaving(
            gained.before_ms,
            gained.after_ms,
            gained.saved_ms,
            gained.low_ms,
            gained.high_ms,
            recorded=False,
        )
        predicted = self.joint_ms if len(self.about.twins) > 1 else self.together_ms["good"]
        left = tuple(predicted_saving(f) for f in self.findings if f not in hits)
        return Verification(achieved, predicted, tuple(map(predicted_saving, hits)), left, ())


def judged(run: Runner, about: Entry, seed: int, pair: Pair | None, *, gpu: bool) -> Result:
    """Records the program once more, and asks the advice."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        trace = selftime.load(recorded(run, about, "bad", seed, Path(folder)), cache=False)
    if not isinstance(trace, selftime.Trace):
        raise SystemExit(f"`{about.name}` left no trace")
    answer = advise(trace)
    sets = repairs(about, about.labels(gpu=gpu), answer.findings)
    together = {twin: saved_together_ms(trace, hits) for twin, hits in sets.items()}
    first_line = account_sentence(answer, str(about.program("bad").parent))
    return Result(
        about, seed, gpu, pair, answer.findings, together, answer.joint.estimate_ms, first_line
    )


def repairs(
    about: Entry, labels: tuple[str, ...], findings: tuple[Finding, ...]
) -> dict[str, tuple[Finding, ...]]:
    """By twin: `good` repairs all that is planted, or each of `good_1` ... one label."""

    def of(wanted: set[str]) -> tuple[Finding, ...]:
        return tuple(f for f in findings if wanted & set(f.covers))

    if len(about.twins) == 1:
        return {"good": of(set(labels))}
    single = about.twins[1:]
    return {twin: of({label}) for twin, label in zip(single, labels, strict=True)}


def function(program: Path, line: int) -> str | None:
    """The innermost function around a line."""
    tree: Any = ast.parse(program.read_text(encoding="utf-8"))
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno).name if around else None


def _last(name: str | None) -> str | None:
    return None if name is None else name.rpartition(".")[2]
