"""Options that several commands have, declared once: what is read, where the answer goes, how."""

from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

FORMAT: Final[Any] = typer.Option(
    "--format", help="How to write it; default: by FILE's ending, or as printed."
)
"""`--format`; `writing.format_of` reads the ending."""

OutputFile: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to a file.")
]
TraceName: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only traces with this in their name.")
]
PrintedRows: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Rows of a printed table; 0 prints all.")
]
TracePath: TypeAlias = Annotated[
    str, typer.Argument(metavar="PATH", help="A trace, a folder of them, a pattern or an address.")
]

ROWS: Final = 50
"""Rows that a terminal shows unless more are asked for."""
