"""The work on the paths of a job's graph: as recorded, and as it would be if ranks were alike.

Peers are the ranks of the same stage of a pipeline; without a pipeline, all ranks.
"""

from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from selftime.analysis.ranks.job_graph import NO_COLLECTIVE, NO_STEP, JobGraph
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.lateness import median_of_other_rows_in_group
from selftime.analysis.students_t import one_sided_t_test_p_value
from selftime.array_types import Flags, Floats, Ints

Imbalance: TypeAlias = Literal["slow ranks", "unequal stages", "unequal micro-batches"]
SLOW_RANKS: Final = "slow ranks"
UNEQUAL_STAGES: Final = "unequal stages"
UNEQUAL_MICRO_BATCHES: Final = "unequal micro-batches"
IMBALANCES: Final[tuple[Imbalance, ...]] = get_args(Imbalance)
"""The kinds of imbalance between ranks without which a job can be computed."""

_SAME_DEVICE_WORK: Final = ("work", "stage")
"""Columns that are equal on paths whose device work is the same."""
_SAME_HOST_WORK: Final = (*_SAME_DEVICE_WORK, "from", "to")
"""Columns that are equal on paths on which the host does the same."""
_MIN_EXCESS_IN_STANDARD_ERRORS: Final = 4
"""Smallest excess of a rank's mean over its peers that counts, in standard errors of that mean."""
_MAX_FALSE_REPORT_PROBABILITY: Final = 0.01
"""Largest accepted probability that the host of any of equal ranks is taken for a slow one."""
_KIND_OF_OTHERS: Final = -1
_KIND_OF_STEP_ENDS: Final = -2


class JobPathWork:
    """The time of the known work on each of the p paths of a job's graph, in ns, shape (p,)."""

    def __init__(self, ranks: Ranks, graph: JobGraph, stages: dict[int, int]) -> None:
        rank = graph.rank[graph.node]
        stage = np.array([stages.get(key, 0) for key in range(int(rank.max(initial=0)) + 1)])
        kinds = _kinds_of_nodes(ranks, graph)
        self._rank, self._stage = rank, stage[rank]
        self._device = graph.device_time.astype(np.float64)
        self._host = graph.host_time.astype(np.float64)
        self._paths = pl.DataFrame(
            {
                "rank": rank,
                "stage": self._stage,
                "step": _steps_of_nodes(graph)[graph.node],
                "work": graph.work,
                "from": np.append(kinds, _KIND_OF_OTHERS)[graph.before],
                "to": kinds[graph.node],
                "device": self._device,
                "usual": graph.usual_device_time.astype(np.float64),
                "host": self._host,
            }
        )
        self._device_ratio = self._device_ratios_to_peers()
        self._host_of_peers = self._host_times_of_peers()
        self._own_time = self._device_times_of_ranks(ranks)
        self.load_of_stage = self._loads_of_stages(stages)
        loads = [self.load_of_stage.get(at, 1.0) for at in range(int(stage.max(initial=0)) + 1)]
        self._load = np.array(loads)[self._stage]

    @property
    def recorded(self) -> Floats:
        """The work as recorded."""
        return self._device + self._host

    def without(self, *imbalances: Imbalance) -> Floats:
        """Returns the work without some kinds of imbalance, all of them together."""
        device = self._device
        if UNEQUAL_MICRO_BATCHES in imbalances:
            device = self._equal_device_times()
        if SLOW_RANKS in imbalances:
            device = device / self._device_ratio
        if UNEQUAL_STAGES in imbalances:
            device = device / self._load
        host = self._host_of_peers if SLOW_RANKS in imbalances else self._host
        return np.asarray(device + host)

    def as_peers(self, ranks: list[int]) -> Floats:
        """Returns the work if these ranks took as long for it as their peers."""
        chosen = np.isin(self._rank, ranks)
        device = np.where(chosen, self._device / self._device_ratio, self._device)
        host = np.where(chosen, self._host_of_peers, self._host)
        return np.asarray(device + host)

    def device_slowness(self, rank: int) -> float:
        """Returns how long a rank's device takes for its work, as a ratio to its peers."""
        own = self._device_ratio[self._rank == rank]
        return float(own[0]) if own.size else 1.0

    def slowness_of_ranks(self) -> dict[int, float]:
        """Returns how long each rank takes for its work, as a ratio to its peers."""
        everyone = np.unique(self._rank).tolist()
        times = {"rank": self._rank, "own": self.recorded, "peers": self.as_peers(everyone)}
        sums = pl.DataFrame(times).group_by("rank").agg(pl.col("own", "peers").sum()).sort("rank")
        return {rank: own / peers if peers else 1.0 for rank, own, peers in sums.iter_rows()}

    def excess_of(self, rank: int) -> float:
        """Returns how much longer a rank takes than its peers, summed over all its paths."""
        return float((self.recorded - self.as_peers([rank])).sum())

    def variation(self) -> float:
        """Returns the coefficient of variation of the same device work on the same rank.

        The mean over all such work, weighed by its time; 0 if none is repeated.
        """
        device = pl.col("device")
        same = self._paths.filter(device > 0).group_by("rank", "work")
        spread = same.agg(ratio=device.std() / device.mean(), time=device.sum()).drop_nulls()
        if not spread.height:
            return 0.0
        return float(np.average(spread["ratio"].to_numpy(), weights=spread["time"].to_numpy()))

    def _equal_device_times(self) -> Floats:
        """Returns what the device work on each path would take if the same took as long each time.

        That is the sum of the means of all work with its names. But where a name stands for work of
        several sizes, the mean of the path's own kind of work: if that differs by more than its
        variation explains. Ranks of a stage then have the same sum, but for slow ones.
        """
        time, usual = pl.col("device"), pl.col("usual")
        error = _MIN_EXCESS_IN_STANDARD_ERRORS * time.std() / pl.len().sqrt()
        same = ("rank", "work")
        own = (time.mean() - usual.mean()).abs().over(same) > error.over(same).fill_null(np.inf)
        equal = self._paths.select(pl.when(own).then(time.mean().over(same)).otherwise(usual))
        return np.asarray(equal.to_series().to_numpy() * self._share_of_stage())

    def _share_of_stage(self) -> Floats:
        """Returns for each path the mean device time of the ranks of its stage, against its own.

        Without ranks that take longer in each step: they have more to do, whatever the batch.
        """
        told = self._paths.filter(~pl.col("rank").is_in(self._ranks_with_more("device")))
        of_rank: dict[int, int] = dict(told.select("rank", "stage").unique().iter_rows())
        share = np.ones(int(self._rank.max(initial=0)) + 1)
        for at in set(of_rank.values()):
            alike = [key for key, stage in of_rank.items() if stage == at and key in self._own_time]
            mean = float(np.mean([self._own_time[key] for key in alike])) if alike else 0.0
            for key in alike:
                share[key] = mean / self._own_time[key]
        return np.asarray(share[self._rank])

    def _device_ratios_to_peers(self) -> Floats:
        """Returns for each path how long its rank's device takes for its work, against its peers.

        It is one ratio for all work of a rank that its peers do as well; 1 if it is not longer by
        more than the variation of its work explains.
        """
        time = pl.col("device")
        own = (
            self._paths.group_by("rank", *_SAME_DEVICE_WORK)
            .agg(pl.len().alias("count"), time.mean().alias("mean"), time.std().alias("deviation"))
            .drop_nulls("deviation")
        )
        own = own.with_columns(
            peers=median_of_other_rows_in_group(own, "mean", _SAME_DEVICE_WORK),
            error=pl.col("deviation") / pl.col("count").sqrt(),
        ).filter(pl.col("peers") > 0)
        mean, peers, error = (
            (pl.col(name) * pl.col("count")).sum() for name in ("mean", "peers", "error")
        )
        is_longer = mean - peers > _MIN_EXCESS_IN_STANDARD_ERRORS * error
        ratios = own.group_by("rank").agg(ratio=pl.when(is_longer).then(mean / peers))
        found = self._paths.join(ratios, on="rank", how="left", maintain_order="left")
        return np.asarray(np.maximum(found["ratio"].fill_null(1.0).to_numpy(), 1.0))

    def _host_times_of_peers(self) -> Floats:
        """Returns how long the host takes on each path, or if less what the peers' hosts take.

        Only on ranks whose host takes longer in all steps by more than these vary.
        """
        own = self._paths.group_by("rank", *_SAME_HOST_WORK).agg(pl.col("host").mean())
        peers = median_of_other_rows_in_group(own, "host", _SAME_HOST_WORK)
        own = own.select("rank", *_SAME_HOST_WORK, peers=peers)
        slow = own.filter(pl.col("rank").is_in(self._ranks_with_more("host")))
        keys = ["rank", *_SAME_HOST_WORK]
        found = self._paths.join(slow, on=keys, how="left", maintain_order="left")
        return np.asarray(found.select(pl.min_horizontal("host", "peers")).to_series().to_numpy())

    def _ranks_with_more(self, column: str) -> list[int]:
        """Returns the ranks that take longer than their peers in the paths of each step.

        Args:
            column: Whose time: `host` or `device`.
        """
        steps = self._paths.group_by("rank", "stage", "step").agg(pl.col(column).sum()).sort("step")
        others = median_of_other_rows_in_group(steps, column, ("stage", "step"))
        more = steps.with_columns(more=pl.col(column) - others).drop_nulls("more")
        by_rank = more.partition_by("rank", as_dict=True)
        return [
            int(rank)
            for (rank,), own in by_rank.items()
            if own.height > 1
            and one_sided_t_test_p_value(own["more"].to_numpy()) * len(by_rank)
            <= _MAX_FALSE_REPORT_PROBABILITY
        ]

    def _device_times_of_ranks(self, ranks: Ranks) -> dict[int, float]:
        """Returns how long a rank computes a step, in ns, if it were as fast as its peers."""
        found = {}
        for key, rank in ranks.ranks_by_key().items():
            steps = rank.summary.steps["counted"].sum() if rank.summary.steps.height else 0
            time = float(rank.summary.work["time"].sum()) if rank.summary.work.height else 0.0
            if steps and time:
                found[key] = time / float(steps) / self.device_slowness(key)
        return found

    def _loads_of_stages(self, stages: dict[int, int]) -> dict[int, float]:
        """Returns what each stage has to compute a step, as a ratio to the mean stage."""
        times = {
            at: float(
                np.median([self._own_time.get(key, 0.0) for key in stages if stages[key] == at])
            )
            for at in sorted(set(stages.values()))
        }
        if len(times) < 2 or not all(times.values()):
            return {}
        mean = sum(times.values()) / len(times)
        return {stage: time / mean for stage, time in times.items()}


def _steps_of_nodes(graph: JobGraph) -> Ints:
    """Returns for each node how many steps its rank had ended before it."""
    ended = np.cumsum(graph.step != NO_STEP) - (graph.step != NO_STEP)
    first = np.searchsorted(graph.rank, graph.rank)
    return np.asarray(ended - ended[first])


def _kinds_of_nodes(ranks: Ranks, graph: JobGraph) -> Ints:
    """Returns a number for each node, the same for collectives of one kind, size and group."""
    rows = collectives_on_one_clock(ranks).rows
    number = rows.select(pl.struct("collective", "group_description", "bytes").rank("dense"))
    kinds = np.full(graph.rank.size, _KIND_OF_OTHERS)
    is_one: Flags = graph.collective != NO_COLLECTIVE
    kinds[is_one] = number.to_series().to_numpy()[graph.collective[is_one]]
    kinds[graph.step != NO_STEP] = _KIND_OF_STEP_ENDS
    return kinds
