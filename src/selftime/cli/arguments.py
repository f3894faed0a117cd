"""Commands that run a program: their own options end where the program's words begin."""

from math import isfinite
from typing import Any, Final

from typer.core import TyperCommand

from selftime.errors import UsageError

_MODULE: Final = ("-m", "--module")


def share(option: str, text: str) -> float:
    """The share that an option names; a UsageError if it is none."""
    number, percent, rest = text.partition("%")
    try:
        found = float(number) / (100 if percent else 1)
    except ValueError:
        found = -1.0
    if rest or not (isfinite(found) and found >= 0):
        raise UsageError(f"`{option} {text[:40]}`: write a share such as `5%` or `0.05`")
    return found


class EndsAtTheProgram(TyperCommand):
    """Options of ours end at the script, or at the module that `-m` names, as Python's do."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        valued = {word for p in self.params if not getattr(p, "is_flag", True) for word in p.opts}
        return super().parse_args(ctx, closed(args, valued))


def closed(args: list[str], valued: set[str]) -> list[str]:
    """The words with `--` after the module, so that what follows goes to it untouched."""
    at = 0
    while at < len(args) and args[at].startswith("-") and args[at] != "--":
        word = args[at]
        if word in valued:
            at += 1
        at += 1
        if word in _MODULE or word.startswith(("-m", "--module=")):
            return [*args[:at], "--", *args[at:]]
    return args
