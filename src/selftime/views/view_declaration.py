"""Declares the type of views: functions that compute a table from a trace or from a job's ranks.

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

from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.recording_requirements import RecordingNeed, missing_requirement_sentences
from selftime.errors import UsageError
from selftime.schema import Column
from selftime.trace import Job, Trace

OptionParameters = ParamSpec("OptionParameters")
ViewSubject = TypeVar("ViewSubject", Trace, Ranks)

TraceJobOrRanks: TypeAlias = Trace | Job | Ranks
"""What a view can be computed for: a trace, a job, or the ranks of a job."""


@dataclass(frozen=True, slots=True)
class PlusJoinedWords:
    """Annotation of a text option that takes one or several of `words`, joined by `+`."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Annotation of a number option that accepts numbers from `least` to `most`, both included."""

    least: float
    most: float
    expected: str
    """Words for the accepted numbers, which follow "write" in an error message."""
    accepts_zero: bool = False
    """Whether 0 is accepted too, below `least`, with a meaning of its own such as "all"."""

    def __contains__(self, number: float) -> bool:
        return self.least <= number <= self.most or (self.accepts_zero and number == 0)


RowLimit: TypeAlias = Annotated[
    int, NumberRange(0, math.inf, "how many rows to keep, or 0 for all")
]
"""Type of an option for how many of the sorted rows to keep, from the first; 0 keeps all."""
Nanoseconds: TypeAlias = Annotated[int, NumberRange(0, math.inf, "nanoseconds, 0 or more")]
"""Type of an option that is a duration in ns, 0 or more."""
Pixels: TypeAlias = Annotated[int, NumberRange(1, math.inf, "1 or more")]
"""Type of an option for the width of a picture, in pixels."""
Share: TypeAlias = Annotated[float, NumberRange(0, 1, "a share of the whole, from 0 to 1")]

MEMORY_DEVICE_COLUMNS: Final = (
    Column(
        "device_type",
        pl.String,
        "name",
        "The type of device with the memory: CPU, CUDA, HIP, XPU, MPS or another.",
        True,
    ),
    Column("device", pl.Int32, "id", "The device's number; -1 for the CPU.", True),
)
"""The columns that say whose memory a row is about, in every view of memory."""

_ALLOCATION_NULL_DOC: Final = "null if unknown, or if rows are not by it."
MEMORY_HOLDER_COLUMNS: Final = (
    Column(
        "category",
        pl.String,
        "name",
        f"What the memory holds, such as parameters; {_ALLOCATION_NULL_DOC}",
        True,
    ),
    Column(
        "operator",
        pl.String,
        "name",
        f"The operator that allocated the memory; {_ALLOCATION_NULL_DOC}",
        True,
    ),
    Column(
        "module",
        pl.String,
        "name",
        f"The innermost nn.Module around the allocation; {_ALLOCATION_NULL_DOC}",
        True,
    ),
)
"""The columns that say what memory holds and what allocated it, in views that group it."""
MEMORY_LINE_COLUMNS: Final = (
    Column(
        "file",
        pl.String,
        "text",
        f"The source file that allocated the memory; {_ALLOCATION_NULL_DOC}",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        f"The source line that allocated the memory; {_ALLOCATION_NULL_DOC}",
        True,
    ),
)
"""The columns of the source line that allocated memory, in views that group it."""
MEMORY_FUNCTION_COLUMN: Final = Column(
    "function",
    pl.String,
    "name",
    f"The function that contains the source line; {_ALLOCATION_NULL_DOC}",
    True,
)
"""The column of the function that allocated memory, in views that group it."""

LINE_EVIDENCE_DOC: Final = (
    "How the source line is known: `stack`, by the recorded Python stack; `stamp`, by a step in "
    "which the recording marked lines as they ran; `definition`, only as the first line of the "
    "function that was running."
)
"""Description of columns `how` of views, which state how a source line is known."""
MAX_OPTION_VALUE: Final = 1 << 62
"""Largest number that an option accepts; as a time in ns it is 146 years."""
_MAX_QUOTED_VALUE_CHARACTERS: Final = 40
"""Largest number of characters of a wrong value that an error message quotes."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a view, as the signature of the view's function declares it."""

    name: str
    type: Any
    default: Any
    choices: tuple[str, ...] = ()
    joinable_words: tuple[str, ...] = ()
    """The words that a text option accepts, joined by `+`; empty if it accepts any text."""
    number_range: NumberRange | None = None
    """The range of numbers that the option accepts; None if it accepts any number."""

    def raise_if_invalid(self, value: Any) -> None:
        """Raises UsageError if the option does not accept the value."""
        shown = str(value)[:_MAX_QUOTED_VALUE_CHARACTERS]
        if self.choices and value not in self.choices:
            expected = ", ".join(self.choices)
            raise UsageError(f"`{self.name}` is `{shown}`; choose one of {expected}")
        if self.joinable_words and not set(str(value).split("+")) <= set(self.joinable_words):
            expected = ", ".join(self.joinable_words)
            raise UsageError(
                f"`{self.name}` is `{shown}`; choose one or several of {expected}, joined by `+`"
            )
        limits = self.number_range
        if limits is not None and value not in limits:
            raise UsageError(f"`{self.name}` is `{shown}`; write {limits.expected}")

    def parse(self, text: str) -> Any:
        """Returns the option's value, parsed from a text on a command line or in a query string."""
        value = text if self.choices else self._convert_text_to_option_type(text)
        self.raise_if_invalid(value)
        return value

    def _convert_text_to_option_type(self, text: str) -> Any:
        kinds = [kind for kind in get_args(self.type) or (self.type,) if kind is not NoneType]
        if bool in kinds:
            if text.lower() in {"true", "yes", "1", "false", "no", "0"}:
                return text.lower() in {"true", "yes", "1"}
            raise UsageError(f"`{self.name}` is `{text}`; write `true` or `false`")
        try:
            value = kinds[0](text)
        except ValueError:
            raise UsageError(
                f"`{self.name}` is `{text[:_MAX_QUOTED_VALUE_CHARACTERS]}`; write a number"
            ) from None
        if (
            not isinstance(value, str) and not -MAX_OPTION_VALUE <= value <= MAX_OPTION_VALUE
        ):  # NaN is refused too
            raise UsageError(f"`{self.name}` is out of range; write a smaller number")
        return value


@dataclass(frozen=True, slots=True)
class View(Generic[OptionParameters]):
    """A pure function that computes a table with declared columns from a trace or a job's ranks."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    compute: Callable[Concatenate[Any, OptionParameters], pl.DataFrame]
    needs: tuple[RecordingNeed, ...] = ()
    """The kinds of data that a recording must contain for the table to have rows."""
    sums: tuple[str, ...] = ()
    """Columns whose sum over any rows is meaningful, because no row is part of another."""

    @property
    def compares_ranks(self) -> bool:
        """Whether the view is computed from the ranks of a job instead of from a single trace."""
        first = next(iter(inspect.signature(self.compute, eval_str=True).parameters.values()))
        return first.annotation is Ranks

    def __call__(
        self,
        subject: TraceJobOrRanks,
        /,
        *args: OptionParameters.args,
        **kwargs: OptionParameters.kwargs,
    ) -> pl.DataFrame:
        options = self.options
        unknown = kwargs.keys() - options.keys()
        if unknown:
            raise UsageError(_unknown_option_message(self.name, min(unknown), options))
        for name, value in kwargs.items():
            options[name].raise_if_invalid(value)
        if self.compares_ranks:
            return self.compute(Ranks.of(subject), *args, **kwargs)
        if not isinstance(subject, Trace):
            raise UsageError(f"`{self.name}` is a view of one trace; compute it for each trace")
        return self.compute(subject, *args, **kwargs)

    def table_of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Returns the rows with the view's columns and dtypes; a column that they lack is null."""
        if not rows.width:
            return pl.DataFrame(schema={column.name: column.dtype for column in self.columns})
        return rows.select(
            (pl.col(column.name) if column.name in rows.columns else pl.lit(None))
            .cast(column.dtype)
            .alias(column.name)
            for column in self.columns
        )

    def missing_data(self, subject: TraceJobOrRanks) -> list[str]:
        """Returns a sentence for each kind of data that the view needs and the recording lacks."""
        return (
            missing_requirement_sentences(subject, self.needs) if isinstance(subject, Trace) else []
        )

    @property
    def title(self) -> str:
        return self.doc.partition("\n")[0]

    @property
    def options(self) -> dict[str, Option]:
        """The view's options by name; command line flags and URL parameters have the same names."""
        _, *rest = inspect.signature(self.compute, eval_str=True).parameters.values()
        return {p.name: _option_of_parameter(p) for p in rest}

    def parse_options(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Returns option values by name, parsed from command line or query string texts."""
        options = self.options
        unknown = texts.keys() - options.keys()
        if unknown:
            raise UsageError(_unknown_option_message(self.name, min(unknown), options))
        return {name: options[name].parse(word) for name, word in texts.items()}


def _option_of_parameter(parameter: inspect.Parameter) -> Option:
    kind, told = parameter.annotation, get_args(parameter.annotation)
    if get_origin(kind) is Literal:
        choices = tuple(str(choice) for choice in told)
        return Option(parameter.name, kind, parameter.default, choices)
    if get_origin(kind) is Annotated:
        parts = tuple(
            word for one in told if isinstance(one, PlusJoinedWords) for word in one.words
        )
        within = next((one for one in told if isinstance(one, NumberRange)), None)
        return Option(
            parameter.name, told[0], parameter.default, joinable_words=parts, number_range=within
        )
    return Option(parameter.name, kind, parameter.default)


def _unknown_option_message(view: str, option: str, options: Mapping[str, Option]) -> str:
    known = ", ".join(options) or "no options"
    return f"the view `{view}` has no option `{option}`; it has {known}"


def view(
    *columns: Column, needs: tuple[RecordingNeed, ...] = (), sums: tuple[str, ...] = ()
) -> Callable[
    [Callable[Concatenate[ViewSubject, OptionParameters], pl.DataFrame]], View[OptionParameters]
]:
    """Returns a decorator that turns a function into a view with the given columns.

    Name, documentation, options, and whether it takes a trace or a job's ranks come from the
    function.
    """

    def declare_view(
        compute: Callable[Concatenate[ViewSubject, OptionParameters], pl.DataFrame],
    ) -> View[OptionParameters]:
        return View(compute.__name__, inspect.getdoc(compute) or "", columns, compute, needs, sums)

    return declare_view
