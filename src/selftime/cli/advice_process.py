"""Prints the advice on traces of a run that has ended, from a new process."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PYTHON_CODE_OF_ADVISE_PROCESS: Final = (
    "import sys; sys.path = [p for p in sys.path if p]; from selftime.cli import main; main()"
)
"""Python code that runs selftime in a new process, without modules of the working folder."""


@contextmanager
def folder_of_links(traces: Sequence[Path]) -> Iterator[str]:
    """Makes a temporary folder of this run alone: that of its traces may hold earlier runs."""
    with tempfile.TemporaryDirectory(prefix="selftime-") as folder:
        for path in traces:
            Path(folder, path.name).symlink_to(path.absolute())
        yield folder


def print_advice(
    *arguments: str, folder: Path, environment: Mapping[str, str], to_stderr: bool
) -> None:
    """Prints the advice from a new process, since a program may have changed this process.

    Args:
        arguments: The words after `selftime advise`.
        folder: The working folder of the new process.
        environment: Its environment.
        to_stderr: Whether to print to stderr instead of stdout.
    """
    subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", _PYTHON_CODE_OF_ADVISE_PROCESS, "advise", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=2 if to_stderr else None,
        check=False,  # errors are printed by then, and the exit status is the program's
    )
