"""Records a notebook cell with `%%selftime`, and shows what to change in it.

    %load_ext selftime

    %%selftime --steps 5
    for batch in loader:
        train_step(batch)

In a cell with steps, a few steady steps are recorded, as by `selftime run`; any other cell is
recorded completely. `%selftime STATEMENT` records a statement and returns its value.
"""

import ast
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

from IPython.core.error import UsageError as MagicUsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from selftime.advice import advise
from selftime.errors import SelftimeError
from selftime.frameworks.recording import Options, run_options
from selftime.ingest.load import load
from selftime.trace import Trace

_NUMBER_OPTION_TYPES: Final = {"steps": int, "warmup": int, "seconds": float, "max-bytes": int}
"""Maps each option of `%%selftime` that takes a number to the number's type."""
_OPTION_AND_VALUE_BY_SWITCH: Final = {
    "memory": ("memory", True),
    "no-stack": ("stack", False),
    "no-shapes": ("shapes", False),
}
"""Maps each option of `%%selftime` without a value to (recording option, value that it sets)."""


@dataclass(frozen=True, slots=True)
class SentenceCellOutput:
    """Output of a cell that shows one sentence."""

    sentence: str

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - the display's protocol
        printer.text(self.sentence)


@magics_class
class SelftimeMagics(Magics):
    """The magics `%selftime` for a statement, and `%%selftime` for a cell."""

    @line_cell_magic  # type: ignore[untyped-decorator]  # IPython
    def selftime(self, line: str, cell: str | None = None) -> Any:
        """Record a statement or a cell, and show what to change in it.

        Options: --steps N, --warmup N, --seconds S, --max-bytes N, --folder DIR, --memory,
        --no-stack, --no-shapes.
        """
        __tracebackhide__ = True
        options, statement = _parse_magic_line(line)
        if cell is not None and statement:
            raise MagicUsageError(
                f"`{statement}` is not an option of %%selftime; write the code in the cell"
            )
        if cell is None and not statement:
            raise MagicUsageError("there is nothing to record; write a statement after %selftime")
        # Count the line of the magic, so that line numbers are those that the user sees.
        code = _compile_cell(
            self.shell, statement if cell is None else cell, lines_above=int(cell is not None)
        )
        try:
            recording = _begin_recording_of_cell(options)
        except SelftimeError as error:
            raise MagicUsageError(str(error)) from None
        try:
            exec(code.body, self.shell.user_ns)  # noqa: S102 - the cell's own code
            value = None if code.last is None else eval(code.last, self.shell.user_ns)  # noqa: S307 - likewise
        except BaseException as error:
            recording.end(f"ended by {type(error).__name__}")
            raise
        _show_advice(recording)
        return value


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Registers `%selftime` and `%%selftime`; `%load_ext selftime` calls this."""
    shell.register_magics(SelftimeMagics)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Unregisters `%selftime` and `%%selftime`; `%unload_ext selftime` calls this."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("selftime", None)


def _parse_magic_line(line: str) -> tuple[Options, str]:
    """Returns (options at the start of a magic's line, the statement after the options)."""
    options: Any = {}
    rest = line.strip()
    while rest.startswith("--"):
        word, _, rest = rest.partition(" ")
        name, equals, value = word.removeprefix("--").partition("=")
        if name in _OPTION_AND_VALUE_BY_SWITCH and not equals:
            key, value_ = _OPTION_AND_VALUE_BY_SWITCH[name]
            options[key] = value_
        elif name in _NUMBER_OPTION_TYPES or name == "folder":
            if not equals:
                value, _, rest = rest.strip().partition(" ")
            options[name.replace("-", "_")] = _parse_magic_option_value(name, value)
        else:
            raise MagicUsageError(f"%selftime has no option `--{name}`; `%selftime?` lists them")
        rest = rest.strip()
    return options, rest


def _parse_magic_option_value(option: str, text: str) -> Any:
    try:
        return _NUMBER_OPTION_TYPES.get(option, str)(text)
    except ValueError:
        raise MagicUsageError(f"`--{option}` is `{text}`, which is not a number") from None


def _begin_recording_of_cell(options: Options) -> Any:
    from selftime.capture.recorder.block_recording import BlockRecording  # noqa: PLC0415 - imports torch

    recording = BlockRecording(run_options("%selftime", options), name="%selftime")
    recording.begin()
    return recording


def _show_advice(recording: Any) -> None:
    """Shows the advice about a recorded cell, or why there is none, below the cell."""
    try:
        recording.end()
        trace = load(recording.trace)
        assert isinstance(trace, Trace)  # noqa: S101 - a file holds one trace
        display(advise(trace))
    except SelftimeError as error:
        display(SentenceCellOutput(f"selftime: {error}"))


@dataclass(frozen=True, slots=True)
class _CompiledCell:
    """Compiled code of a cell: its statements, and its final expression if there is one."""

    body: CodeType
    last: CodeType | None
    """Code of the cell's final expression, whose value the shell shows; None without one."""


def _compile_cell(shell: InteractiveShell, text: str, *, lines_above: int) -> _CompiledCell:
    """Compiles a cell's text as the shell does; line numbers start after `lines_above`.

    The source is registered so that tracebacks show its lines.
    """
    __tracebackhide__ = True
    text = "\n" * lines_above + shell.transform_cell(text)
    name = shell.compile.cache(text, len(shell.history_manager.input_hist_parsed) - 1)
    body = shell.transform_ast(shell.compile.ast_parse(text, filename=name)).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    return _CompiledCell(
        shell.compile(ast.Module(body, []), name, "exec"),
        None if last is None else shell.compile(ast.Expression(last.value), name, "eval"),
    )
