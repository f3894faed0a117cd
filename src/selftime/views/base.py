"""What a view is: a pure function from a trace, or from a job's ranks, to one declared table.

Its options are keyword-only arguments of a simple type. Command line, page, notebook and Python
read name, options, defaults and columns from the function itself.
"""

import inspect
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

    def read(self, word: str) -> Any:
        """The option's value from a word that a command line or a query string holds."""
        if self.choices:
            if word not in self.choices:
                expected = ", ".join(self.choices)
                raise UsageError(f"`{self.name}` is `{word}`; choose one of {expected}")
            return word
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
            raise UsageError(f"`{self.name}` is beyond any time or count; write a smaller number")
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
        unknown = kwargs.keys() - self.options.keys()
        if unknown:
            raise UsageError(_no_option(self.name, min(unknown), self.options))
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
        return Option(parameter.name, told[0], parameter.default, parts=parts)
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
