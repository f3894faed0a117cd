"""One sheet of terminal text: what rich draws, as a string, in a given width."""

from io import StringIO

from rich.console import Console, RenderableType


def sheet(*parts: RenderableType, width: int, colour: bool = False) -> str:
    """The parts below one another; without colour there is no escape sequence in it."""
    page = StringIO()
    console = Console(
        file=page,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},  # the caller decides; the environment must not
    )
    for part in parts:
        console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())
