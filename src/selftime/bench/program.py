"""A program that is timed: its words as a shell has them, and how the system starts it."""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from selftime.capture.program.command import is_command
from selftime.errors import UsageError


@dataclass(frozen=True, slots=True)
class BenchedProgram:
    """A script, a module after `-m`, or a command, with what it is given."""

    words: tuple[str, ...]

    @classmethod
    def of_text(cls, text: str) -> "BenchedProgram":
        """The program of one string, such as `train.py --workers 4` or `-m package.train`."""
        try:
            return cls.of_words(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"`{text[:60]}` is no command line: {error}") from error

    @classmethod
    def of_words(cls, words: list[str]) -> "BenchedProgram":
        """A UsageError if there is nothing to run."""
        if not words or words == ["-m"]:
            raise UsageError("there is no program to run; name a script, or a module after `-m`")
        name = words[0]
        is_module = name == "-m"
        if name.startswith("-") and not is_module:
            raise UsageError(f"`{name[:60]}` is no program; begin with a script, or with `-m`")
        if not is_module and not is_command(name) and not Path(name).exists():
            raise UsageError(f"the script `{name[:200]}` does not exist; check the path")
        return cls(tuple(words))

    @property
    def label(self) -> str:
        """The words as they would be typed."""
        return shlex.join(self.words)

    @property
    def command(self) -> list[str]:
        """What the system runs: scripts and modules by the Python that runs this."""
        name = self.words[0]
        if name == "-m" or not is_command(name):
            return [sys.executable, *self.words]
        # A file in the working folder is run by a path: a bare name is looked for elsewhere.
        first = os.path.join(os.curdir, name) if Path(name).is_file() else name  # noqa: PTH118 - `pathlib` drops the leading dot
        return [first, *self.words[1:]]
