"""IPython and notebooks: `%%selftime` records a cell and shows what to change in it.

    %load_ext selftime

    %%selftime --steps 5
    for batch in loader:
        train_step(batch)

A cell that makes steps is recorded as `selftime run` records a program: a few steady ones. Another
one is recorded as a whole. `%selftime STATEMENT` does so with a statement, whose value it gives.
"""

import ast
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

from IPython.core.error import UsageError as WrongWords
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from selftime.advice import Advice, advise
from selftime.errors import SelftimeError
from selftime.frameworks.recording import Options, as_limits
from selftime.ingest.load import load
from selftime.trace import Trace

_NUMBERS: Final = {"steps": int, "warmup": int, "seconds": float, "max-bytes": int}
_SWITCHES: Final = {
    "memory": ("memory", True),
    "no-stack": ("stack", False),
    "no-shapes": ("shapes", False),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is shown below a cell: the page in a notebook, text in a terminal."""

    advice: Advice

    def _repr_html_(self) -> str:
        return self.advice._repr_html_()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - the display's protocol
        printer.text(str(self.advice))


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence below a cell."""

    sentence: str

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - the display's protocol
        printer.text(self.sentence)


@magics_class
class SelftimeMagics(Magics):
    """`%selftime` and `%%selftime`."""

    @line_cell_magic  # type: ignore[untyped-decorator]  # IPython
    def selftime(self, line: str, cell: str | None = None) -> Any:
        """Record a statement or a cell, and show what to change in it.

        Options: --steps N, --warmup N, --seconds S, --max-bytes N, --folder DIR, --memory,
        --no-stack, --no-shapes.
        """
        __tracebackhide__ = True
        options, statement = _read(line)
        if cell is not None and statement:
            raise WrongWords(f"`{statement}` is no option of %%selftime; the code is in the cell")
        if cell is None and not statement:
            raise WrongWords("there is nothing to record; write a statement after %selftime")
        # The line of the magic counts: lines are those that the user sees.
        code = _compiled(self.shell, statement if cell is None else cell, above=cell is not None)
        try:
            stretch = _begin(options)
        except SelftimeError as error:
            raise WrongWords(str(error)) from None
        try:
            exec(code.body, self.shell.user_ns)  # noqa: S102 - the cell's own code
            value = None if code.last is None else eval(code.last, self.shell.user_ns)  # noqa: S307 - likewise
        except BaseException as error:
            stretch.end(f"ended by {type(error).__name__}")
            raise
        _show(stretch)
        return value


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What `%load_ext selftime` calls."""
    shell.register_magics(SelftimeMagics)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """What `%unload_ext selftime` calls."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("selftime", None)


def _read(line: str) -> tuple[Options, str]:
    """The options that a line begins with, and the rest of it."""
    options: Any = {}
    rest = line.strip()
    while rest.startswith("--"):
        word, _, rest = rest.partition(" ")
        name, equals, value = word.removeprefix("--").partition("=")
        if name in _SWITCHES and not equals:
            key, value_ = _SWITCHES[name]
            options[key] = value_
        elif name in _NUMBERS or name == "folder":
            if not equals:
                value, _, rest = rest.strip().partition(" ")
            options[name.replace("-", "_")] = _value(name, value)
        else:
            raise WrongWords(f"%selftime has no option `--{name}`; `%selftime?` lists them")
        rest = rest.strip()
    return options, rest


def _value(name: str, text: str) -> Any:
    try:
        return _NUMBERS.get(name, str)(text)
    except ValueError:
        raise WrongWords(f"`--{name}` is `{text}`, which is no number") from None


def _begin(options: Options) -> Any:
    from selftime.capture.recorder.stretch import Stretch  # noqa: PLC0415 - imports torch

    stretch = Stretch(as_limits("%selftime", options), name="%selftime")
    stretch.begin()
    return stretch


def _show(stretch: Any) -> None:
    """What is wrong with the answer is told, and is no failure of the cell."""
    try:
        stretch.end()
        trace = load(stretch.trace)
        assert isinstance(trace, Trace)  # noqa: S101 - a file holds one trace
        display(Answer(advise(trace)))
    except SelftimeError as error:
        display(Told(f"selftime: {error}"))


@dataclass(frozen=True, slots=True)
class _Code:
    body: CodeType
    last: CodeType | None
    """The expression that the code ends with; the shell shows its value."""


def _compiled(shell: InteractiveShell, text: str, *, above: int) -> _Code:
    """The code as the shell would compile it, from the line after those `above` it.

    Its lines are found where tracebacks look.
    """
    __tracebackhide__ = True
    text = "\n" * above + shell.transform_cell(text)
    name = shell.compile.cache(text, len(shell.history_manager.input_hist_parsed) - 1)
    body = shell.transform_ast(shell.compile.ast_parse(text, filename=name)).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    return _Code(
        shell.compile(ast.Module(body, []), name, "exec"),
        None if last is None else shell.compile(ast.Expression(last.value), name, "eval"),
    )
