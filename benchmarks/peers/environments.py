"""Make an environment for each peer, with the versions in `pinned.json`.

    python benchmarks/peers/environments.py [--into FOLDER] [NAME ...]

An environment that holds what is pinned already is left as it is.
"""

import argparse
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

__all__ = ["FOLDER", "PINNED", "made", "python"]

FOLDER: Final = Path(os.environ.get("BENCH_PEERS", ".venv/peers"))
PINNED: Final[dict[str, list[str]]] = json.loads(
    Path(__file__).with_name("pinned.json").read_text("utf-8")
)
"""What each environment holds."""
STAMP: Final = "pinned.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, default=FOLDER)
    parser.add_argument("names", nargs="*", choices=[[], *PINNED], help="all, if none is named")
    options = parser.parse_args()
    refused = [name for name in options.names or PINNED if not make(name, options.into / name)]
    if refused:
        sys.exit(f"no environment for {', '.join(refused)}: pip says why above")


def make(name: str, folder: Path) -> bool:
    """Whether the environment is there now."""
    stamp = folder / STAMP
    if made(name, folder.parent):
        return True
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    done = subprocess.run([*pip, "--disable-pip-version-check", *PINNED[name]], check=False)
    if done.returncode:
        return False
    stamp.write_text(json.dumps(PINNED[name]), "utf-8")
    print(f"{folder}: {', '.join(PINNED[name])}")
    return True


def made(name: str, folder: Path = FOLDER) -> bool:
    """Whether the environment is there, with what is pinned now."""
    stamp = folder / name / STAMP
    return stamp.is_file() and json.loads(stamp.read_text("utf-8")) == PINNED[name]


def python(name: str, folder: Path = FOLDER) -> Path:
    """The interpreter of the environment; not resolved, or it is none of it."""
    return (folder / name / "bin" / "python").absolute()


if __name__ == "__main__":
    main()
