"""Clusters of Ray on this machine."""

from typing import Any

from ray.cluster_utils import Cluster

STORE = 80 << 20
"""Bytes of a node's store of objects: the least that Ray takes, about."""
NODE: Any = {"num_cpus": 1, "object_store_memory": STORE}
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing goes over the network
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what Ray will do by default
}
"""Of the environment that a cluster starts in."""
TRIES = 4
"""Ray gives a node 30 seconds to start, which a busy machine may not keep."""


def two_nodes() -> tuple[Cluster, Any]:
    """A cluster of two nodes of one core each, and its second node.

    A cluster that does not start in time is taken down, and another is tried.
    """
    for left in reversed(range(TRIES)):
        cluster = Cluster(shutdown_at_exit=True)
        try:
            cluster.add_node(**NODE, include_dashboard=False)
            return cluster, cluster.add_node(**NODE)
        except Exception:  # Ray's own for a node that is late
            cluster.shutdown()  # type: ignore[no-untyped-call]  # Ray's own
            if not left:
                raise
    raise AssertionError
