"""A program on a cluster of two nodes, one of which dies while it reads; tells what it answered.

python -m tests.scale.losing_a_node MARKS ANSWER.json
"""

import json
import logging
import os
import sys
import time
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import ray
from tests.scale import tasks
from tests.scale.clusters import SETTINGS, started

from selftime.scale import Ray

PLACES = [f"rank{number}" for number in range(4)]
PATIENCE_S = 90
"""A cluster knows within this that a node is dead."""


def living() -> int:
    """How many nodes the cluster takes for alive."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]  # Ray's own
    return sum(node["Alive"] for node in nodes)


def main(marks: Path, told: Path) -> None:
    os.environ.update(SETTINGS)
    cluster, (_, other) = started(1, 1)
    ray.init(cluster.address, log_to_driver=False, logging_level=logging.CRITICAL)

    def kill() -> None:
        while not list(marks.glob("*.doomed.*")):
            time.sleep(0.05)
        cluster.remove_node(other, allow_graceful=False)

    Thread(target=kill, daemon=True).start()
    task = partial(tasks.outlive, marks=str(marks), doomed=other.node_id)
    answers = list(Ray().map(task, PLACES))
    alive, until = living(), time.monotonic() + PATIENCE_S
    while alive > 1 and time.monotonic() < until:  # the cluster is told later than who waits
        time.sleep(0.2)
        alive = living()
    told.write_text(json.dumps({"answers": answers, "alive": alive}), encoding="utf-8")
    ray.shutdown()
    cluster.shutdown()  # type: ignore[no-untyped-call]  # Ray's own


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
