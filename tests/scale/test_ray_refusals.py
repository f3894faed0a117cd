"""Without Ray, or without a cluster, one sentence says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from selftime.cli import main
if "--without" in sys.argv:
    sys.argv.remove("--without")
    sys.modules["ray"] = None
main()
"""


def refused(job: Path, *words: str) -> str:
    """What a command says that fails, in a process of its own: Ray is one for each process."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", PROGRAM, "view", "stragglers", str(job), "--engine", "ray", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_without_ray_it_says_how_to_get_it(job: Path) -> None:
    assert "install the extra `ray` of selftime" in refused(job, "--without")


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nonsense"])
@pytest.mark.sweep(1)
def test_without_a_cluster_it_says_how_to_start_one(address: str, job: Path) -> None:
    pytest.importorskip("ray")
    told = refused(job, "--address", address)
    assert f"no Ray cluster answers at `{address}`: start one with `ray start --head`" in told
