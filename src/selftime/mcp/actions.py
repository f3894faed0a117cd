"""Does for an agent what the user allowed: record a program, time two, verify a repair."""

import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from selftime.advice.verify import verify
from selftime.bench.result import read_bench
from selftime.compare.results.result_comparison import compare_results
from selftime.errors import UsageError
from selftime.mcp.action_answers import bench_answer, record_answer, verification_answer
from selftime.mcp.program_runs import ProgramOutcome, run_watched
from selftime.mcp.trace_library import TraceLibrary
from selftime.reports.advice.markdown import code_span

ACTION_NAMES: Final = ("run", "bench", "verify")
"""What a user may allow with `--allow`."""
DEFAULT_LIMIT_S: Final = 600.0
"""Default of the longest time of an action, in s."""
_MAX_ARGUMENTS: Final = 100
_PYTHON_CODE: Final = (
    "import sys; sys.path = [p for p in sys.path if p]; from selftime.cli import main; main()"
)
"""Python code that runs selftime without modules of the working folder."""
_SHARE_OF_LIMIT_FOR_ROUNDS: Final = 0.8
"""Share of the time of an action in which a bench may begin new rounds."""


@dataclass(frozen=True, slots=True)
class AllowedActions:
    """What the user allows an agent to do, and where."""

    names: frozenset[str]
    roots: tuple[Path, ...]
    """Folders below which a program's script and working folder must lie, links resolved."""
    output_folder: Path
    """Where recordings are written."""
    limit_s: float = DEFAULT_LIMIT_S

    @classmethod
    def from_options(
        cls, allowed: str, roots: Iterable[Path], output_folder: Path, limit_s: float
    ) -> "AllowedActions":
        """Parses the words of `--allow`, and resolves the roots.

        Raises:
            UsageError: A word is no action, or a root is no folder.
        """
        names = [word.strip() for word in allowed.split(",")]
        wrong = next((name for name in names if name not in ACTION_NAMES), None)
        if wrong is not None:
            raise UsageError(
                f"`--allow` has `{wrong[:40]}`; it takes {', '.join(ACTION_NAMES)}, with commas"
            )
        given = tuple(roots) or (Path.cwd(),)
        for root in given:
            if not root.is_dir():
                raise UsageError(f"`--root {root}` is no folder; give one that programs lie below")
        resolved = tuple(root.resolve() for root in given)
        return cls(frozenset(names), resolved, output_folder.resolve(), limit_s)


class Actions:
    """Runs one action at a time; a second one is refused meanwhile."""

    def __init__(self, allowed: AllowedActions, library: TraceLibrary) -> None:
        self.allowed = allowed
        self._library = library
        self._lock = threading.Lock()

    def record(
        self,
        script: str,
        args: Sequence[str],
        folder: str | None,
        steps: int | None,
        seed: int | None,
        is_cancelled: Callable[[], bool],
    ) -> str:
        """Records a program with `selftime run --results`; returns its end and the new traces."""
        program, cwd = self._script(script), self._working_folder(folder, script)
        _check_arguments(args)
        options = ["--quiet", "--results", "--output", str(self.allowed.output_folder)]
        options += [] if steps is None else ["--steps", str(steps)]
        options += [] if seed is None else ["--seed", str(seed)]
        with self._alone():
            before = {trace.id for trace in self._library.listed_traces()}
            outcome = self._selftime(["run", *options, str(program), *args], cwd, is_cancelled)
        new = [trace for trace in self._library.listed_traces() if trace.id not in before]
        return record_answer(outcome, new, self.allowed.limit_s)

    def bench(
        self,
        before: str,
        after: str,
        args: Sequence[str],
        folder: str | None,
        is_cancelled: Callable[[], bool],
    ) -> str:
        """Times two programs in turn with `selftime bench`; returns the speed-up."""
        programs, cwd = (
            (self._script(before), self._script(after)),
            self._working_folder(folder, before),
        )
        _check_arguments(args)
        lines = [shlex.join([str(program), *args]) for program in programs]
        with self._alone(), tempfile.TemporaryDirectory(prefix="selftime-mcp-") as name:
            file = Path(name, "bench.json")
            seconds = max(1.0, self.allowed.limit_s * _SHARE_OF_LIMIT_FOR_ROUNDS)
            words = ["bench", "--quiet", f"--before={lines[0]}", f"--after={lines[1]}"]
            words += ["--max-seconds", str(seconds), "--format", "json", "--output", str(file)]
            outcome = self._selftime(words, cwd, is_cancelled)
            result = read_bench(file) if file.exists() else None
        return bench_answer(outcome, result, self.allowed.limit_s)

    def verify(self, before: str, after: str, finding: str | None) -> str:
        """Compares what a repair saved with what was promised, and the results of both programs."""
        traces = self._library.open(before), self._library.open(after)
        keep_results = any("results" in trace.run.facts for trace in traces)
        found = verify(
            *traces,
            None,
            finding,
            (lambda semantics: compare_results(*traces, semantics)) if keep_results else None,
        )
        return verification_answer(found)

    def _selftime(
        self, words: Sequence[str], folder: Path, is_cancelled: Callable[[], bool]
    ) -> ProgramOutcome:
        command = [sys.executable, "-c", _PYTHON_CODE, *words]
        return run_watched(command, folder, self.allowed.limit_s, is_cancelled)

    def _alone(self) -> "_Alone":
        return _Alone(self._lock)

    def _script(self, text: str) -> Path:
        path = self._path_below_roots(text, "the script")
        if path.suffix != ".py" or not path.is_file():
            raise UsageError(
                f"the script {_quoted(text)} is no Python file; give one that ends in `.py`"
            )
        return path

    def _working_folder(self, text: str | None, script: str) -> Path:
        if text is None:
            program = self._script(script)
            return next(root for root in self.allowed.roots if program.is_relative_to(root))
        path = self._path_below_roots(text, "the working folder")
        if not path.is_dir():
            raise UsageError(f"the working folder {_quoted(text)} is no folder; give one")
        return path

    def _path_below_roots(self, text: str, what: str) -> Path:
        """Returns a path without links, which exists and lies below one of the roots."""
        for root in self.allowed.roots:
            try:
                path = Path(root, text).resolve(strict=True)
            except (OSError, ValueError, RuntimeError):  # not there, a null byte, a loop of links
                continue
            if any(path.is_relative_to(other) for other in self.allowed.roots):
                return path
        raise UsageError(
            f"{what} {_quoted(text)} is not there below the folders that the user allows; give a "
            "path relative to one of them"
        )


class _Alone:
    """Context manager for one action at a time."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise UsageError("another action is running; wait for its answer, or cancel it")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _check_arguments(args: Sequence[str]) -> None:
    if len(args) > _MAX_ARGUMENTS:
        raise UsageError(f"there are {len(args)} arguments; give at most {_MAX_ARGUMENTS}")
    if any("\0" in word for word in args):
        raise UsageError("an argument has a null byte, which no program can be given; leave it out")


def _quoted(text: str) -> str:
    return code_span(text)
