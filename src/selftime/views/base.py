"""What a view is: a pure function from a trace, or from a job's ranks, to one declared table.

Its options are keyword-only arguments of a simple type. Command line, page, notebook and Python
read name, options, defaults and columns from the function itself.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
)

import polars as pl

from selftime.analysis.ranks.ranks import Ranks
from selftime.analysis.requirements import Need, missing
from selftime.errors import UsageError
from selftime.schema import Column
from selftime.trace import Job, Trace

P = ParamSpec("P")
S = TypeVar("S", Trace, Ranks)

Subject: TypeAlias = Trace | Job | Ranks
"""What a view may be asked about."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Of a text option's type: the words of which it takes one, or several joined by `+`."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Within:
    """Of a number option's type: the numbers that it takes, both ends included."""

    least: float
    most: float
    expected: str
    """What to write, as a sentence goes on after "write"."""


Top: TypeAlias = Annotated[int, Within(0, math.inf, "how many rows to keep, or 0 for all")]
"""How many rows of the sorted table are kept, from the first; 0 keeps all."""
Nanoseconds: TypeAlias = Annotated[int, Within(0, math.inf, "nanoseconds, 0 or more")]
"""A duration."""
Share: TypeAlias = Annotated[float, Within(0, 1, "a share of the whole, from 0 to 1")]

FARTHEST: Final = 1 << 62
"""No count and no time is beyond this: 146 years in nanoseconds."""
_SHOWN: Final = 40
"""Characters of a wrong word that are told."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a view, as its signature declares it."""

    name: str
    type: Any
    default: Any
    choices: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """Words that it takes, joined by `+`; empty if it takes any."""
    within: Within | None = None
    """The numbers that it takes; None if it takes any."""

    def check(self, value: Any) -> None:
        """Refuse a value that is none of those that the option declares."""
        shown = str(value)[:_SHOWN]
        if self.choices and value not in self.choices:
            expected = ", ".join(self.choices)
            raise UsageError(f"`{self.name}` is `{shown}`; choose one of {expected}")
        if self.parts and not set(str(value).split("+")) <= set(self.parts):
            expected = ", ".join(self.parts)
            raise UsageError(
                f"`{self.name}` is `{shown}`; choose of {expected}, several joined by `+`"
            )
        if self.within and not self.within.least <= value <= self.within.most:
            raise UsageError(f"`{self.name}` is `{shown}`; write {self.within.expected}")

    def read(self, word: str) -> Any:
        """The option's value from a word that a command line or a query string holds."""
        value = word if self.choices else self._typed(word)
        self.check(value)
        return value

    def _typed(self, word: str) -> Any:
        kinds = [kind for kind in get_args(self.type) or (self.type,) if kind is not NoneType]
        if bool in kinds:
            if word.lower() in {"true", "yes", "1", "false", "no", "0"}:
                return word.lower() in {"true", "yes", "1"}
            raise UsageError(f"`{self.name}` is `{word}`; write `true` or `false`")
        try:
            value = kinds[0](word)
        except ValueError:
            raise UsageError(f"`{self.name}` is `{word[:_SHOWN]}`; write a number") from None
        if not isinstance(value, str) and not -FARTHEST <= value <= FARTHEST:  # so is no NaN
            raise UsageError(f"`{self.name}` is out of range; write a smaller number")
        return value


@dataclass(frozen=True, slots=True)
class View(Generic[P]):
    """A pure function from a trace, or from a job's ranks, to a table, and what columns mean."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    compute: Callable[Concatenate[Any, P], pl.DataFrame]
    needs: tuple[Need, ...] = ()
    """What a recording must hold for the table to have rows."""
    sums: tuple[str, ...] = ()
    """Columns whose sum over any of the rows is a figure: no row is a part of another there."""

    @property
    def across(self) -> bool:
        """Whether it relates the ranks of a job; a trace is a job of one rank."""
        first = next(iter(inspect.signature(self.compute, eval_str=True).parameters.values()))
        return first.annotation is Ranks

    def __call__(self, subject: Subject, /, *args: P.args, **kwargs: P.kwargs) -> pl.DataFrame:
        options = self.options
        unknown = kwargs.keys() - options.keys()
        if unknown:
            raise UsageError(_no_option(self.name, min(unknown), options))
        for name, value in kwargs.items():
            options[name].check(value)
        if self.across:
            return self.compute(Ranks.of(subject), *args, **kwargs)
        if not isinstance(subject, Trace):
            raise UsageError(f"`{self.name}` is a view of one trace; ask each trace of the job")
        return self.compute(subject, *args, **kwargs)

    def lacks(self, subject: Subject) -> list[str]:
        """What the recording must hold and does not, as sentences that say how to get it."""
        return missing(subject, self.needs) if isinstance(subject, Trace) else []

    @property
    def title(self) -> str:
        return self.doc.partition("\n")[0]

    @property
    def options(self) -> dict[str, Option]:
        """The view's keyword arguments: the flags of its command, the query of its page."""
        _, *rest = inspect.signature(self.compute, eval_str=True).parameters.values()
        return {p.name: _option(p) for p in rest}

    def read(self, words: Mapping[str, str]) -> dict[str, Any]:
        """Keyword arguments from text, whether a command line or a query string wrote it."""
        options = self.options
        unknown = words.keys() - options.keys()
        if unknown:
            raise UsageError(_no_option(self.name, min(unknown), options))
        return {name: options[name].read(word) for name, word in words.items()}


def _option(parameter: inspect.Parameter) -> Option:
    kind, told = parameter.annotation, get_args(parameter.annotation)
    if get_origin(kind) is Literal:
        choices = tuple(str(choice) for choice in told)
        return Option(parameter.name, kind, parameter.default, choices)
    if get_origin(kind) is Annotated:
        parts = tuple(word for one in told if isinstance(one, Joined) for word in one.words)
        within = next((one for one in told if isinstance(one, Within)), None)
        return Option(parameter.name, told[0], parameter.default, parts=parts, within=within)
    return Option(parameter.name, kind, parameter.default)


def _no_option(view: str, word: str, options: Mapping[str, Option]) -> str:
    known = ", ".join(options) or "no options"
    return f"the view `{view}` has no option `{word}`; it has {known}"


def view(
    *columns: Column, needs: tuple[Need, ...] = (), sums: tuple[str, ...] = ()
) -> Callable[[Callable[Concatenate[S, P], pl.DataFrame]], View[P]]:
    """Declare a view by its columns, what a recording must hold, and which columns may be summed.

    Name, documentation and options come from the function, and whether it is of a trace or of the
    ranks of a job.
    """

    def declare(compute: Callable[Concatenate[S, P], pl.DataFrame]) -> View[P]:
        return View(compute.__name__, inspect.getdoc(compute) or "", columns, compute, needs, sums)

    return declare
