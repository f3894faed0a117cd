"""What a job would take with several changes at once, against simulated jobs without the causes."""

from dataclasses import replace
from pathlib import Path

import pytest

from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.job_what_if import JobWhatIf, job_what_if
from selftime.errors import UsageError
from selftime.ingest.load import load
from selftime.testing.simulated_jobs import simulate_job
from selftime.testing.simulated_pipelines import PipelineJob, simulate_pipeline_job
from selftime.views import VIEWS

HEALTHY = PipelineJob(data_parallel=2, stages=3, micro_batches=6, steps=4)
ERROR = 0.03


def ranks_of(folder: Path, traces: dict[int, bytes]) -> Ranks:
    for rank, content in traces.items():
        (folder / f"rank{rank}.json").write_bytes(content)
    return Ranks.of(load(folder, cache=False))


def what_if_of(folder: Path, job: PipelineJob) -> JobWhatIf:
    found = job_what_if(ranks_of(folder, simulate_pipeline_job(job).traces))
    assert found is not None
    return found


def test_nothing_changed_is_the_recorded_step(tmp_path: Path) -> None:
    found = what_if_of(tmp_path, HEALTHY)
    true = simulate_pipeline_job(HEALTHY).step_ms
    assert found.without(()).with_unknown_waits / 1e6 == pytest.approx(true, rel=0.002)


def test_a_change_alone_is_as_the_job_without_its_cause(tmp_path: Path) -> None:
    found = what_if_of(tmp_path, replace(HEALTHY, slow_ranks=((3, 1.8),)))
    true = simulate_pipeline_job(HEALTHY).step_ms
    assert found.without(["slow ranks"]).with_unknown_waits / 1e6 == pytest.approx(true, rel=ERROR)


def test_changes_together_are_computed_together(tmp_path: Path) -> None:
    """What both save together is not the sum of what each saves: a slow rank hides the other."""
    both = replace(HEALTHY, slow_ranks=((3, 1.8),), length_spread=0.5)
    found = what_if_of(tmp_path, both)
    recorded = found.recorded.with_unknown_waits
    alone = [
        recorded - found.without([change]).with_unknown_waits
        for change in ("slow ranks", "unequal micro-batches")
    ]
    together = recorded - found.without(["slow ranks", "unequal micro-batches"]).with_unknown_waits
    alike = replace(HEALTHY, length_spread=0.5, has_mean_lengths=True)
    true = simulate_pipeline_job(alike).step_ms
    assert (recorded - together) / 1e6 == pytest.approx(true, rel=ERROR)
    assert together > max(alone)
    assert together != pytest.approx(sum(alone), rel=0.001)


def test_the_order_of_the_changes_does_not_matter(tmp_path: Path) -> None:
    found = what_if_of(tmp_path, replace(HEALTHY, slow_ranks=((3, 1.8),)))
    one, other = (found.without(order).each for order in (found.changes, found.changes[::-1]))
    assert (one == other).all()


def test_the_view_has_the_job_each_change_and_the_choice(tmp_path: Path) -> None:
    ranks = ranks_of(tmp_path, simulate_pipeline_job(HEALTHY).traces)
    view = VIEWS["job_what_if"]
    table = view(ranks, without="unequal stages, slow ranks")
    assert table["without"][0] == ""
    assert table["without"][-1] == "slow ranks, unequal stages"
    assert table["changes"].to_list() == [0, *[1] * (table.height - 2), 2]
    assert view(ranks, every_choice=True).height == 2 ** (table.height - 2)
    with pytest.raises(UsageError, match="cannot be computed without `luck`"):
        view(ranks, without="luck")


def test_transfers_of_a_group_take_time(tmp_path: Path) -> None:
    found = job_what_if(ranks_of(tmp_path, simulate_job(ranks=2, steps=4).traces))
    assert found is not None
    transfers = [change for change in found.changes if change.startswith("transfers of ")]
    assert transfers
    assert found.without(transfers).with_unknown_waits < found.recorded.with_unknown_waits
