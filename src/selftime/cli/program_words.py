"""Commands that run a program: their own options end where the program's words begin."""

from typing import Any, Final

from typer.core import TyperCommand

_MODULE: Final = ("-m", "--module")


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
