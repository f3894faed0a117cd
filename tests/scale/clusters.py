"""Clusters of Ray on this machine."""

from typing import Any

from ray.cluster_utils import Cluster

STORE = 80 << 20
"""Bytes of a node's store of objects: the least that Ray takes, about."""
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing goes over the network
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what Ray will do by default
}
"""Of the environment that a cluster starts in."""
TRIES = 4
"""Ray gives a node 30 seconds to start, which a busy machine may not keep."""


def started(*cores: int) -> tuple[Cluster, list[Any]]:
    """A cluster with a node for each of the numbers of cores, and its nodes.

    A cluster that does not start in time is taken down, and another is tried: the time is Ray's own
    and cannot be set.
    """
    for left in reversed(range(TRIES)):
        cluster = Cluster(shutdown_at_exit=True)
        try:
            nodes = [_added(cluster, number) for number in cores]
        except Exception:  # Ray's own for a node that is late
            cluster.shutdown()  # type: ignore[no-untyped-call]  # Ray's own
            if not left:
                raise
        else:
            return cluster, nodes
    raise AssertionError


def _added(cluster: Cluster, cores: int) -> Any:
    return cluster.add_node(num_cpus=cores, object_store_memory=STORE, include_dashboard=False)
