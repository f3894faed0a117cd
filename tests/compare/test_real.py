"""Real pairs: the story is the one that is known of them."""

import os
from pathlib import Path

import pytest
from tests.compare.programs import total

from selftime.compare import Comparison, compare
from selftime.compare.check.baseline_files import Baseline
from selftime.compare.check.limit_checks import check_recording
from selftime.ingest.load import load
from selftime.trace import Trace

pytestmark = pytest.mark.traces


FOLDER = Path(os.environ.get("SELFTIME_TRACES", Path(__file__).parents[3] / "shared" / "traces"))


def read(name: str) -> Trace:
    path = FOLDER / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")
    trace = load(path)
    assert isinstance(trace, Trace)
    return trace


def pair(before: str, after: str) -> Comparison:
    return compare(read(before), read(after))


NAMES = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", NAMES)
def test_no_recording_differs_from_itself(name: str) -> None:
    trace = read(name)
    found = compare(trace, trace)
    for table in found.tables().values():
        assert (table["difference"] == 0).all()
        assert table["verdict"].null_count() == table.height
    assert found.tree["after"].sum() == pytest.approx(total(found.tree, "before"))
    baseline = Baseline.from_traces(trace)
    assert {one.state for one in check_recording(trace, baseline=baseline).checked} <= {
        "within",
        "unknown",
    }


def test_workers_that_load_beside_the_steps() -> None:
    found = pair("v100-2021-resnet50-workers0.pt.trace", "v100-2021-resnet50-workers4.pt.trace")
    assert set(found.steps["verdict"]) == {"faster"}
    [loading] = found.parts.filter(part="data_loading").to_dicts()
    assert loading["verdict"] == "faster"
    whole = total(found.parts, "difference")
    assert loading["difference"] == pytest.approx(whole, rel=0.2)  # it is nearly all of it
    # The device does what it did, but for what the loader's other thread has it copy.
    assert total(found.tree, "difference") < 0.02 * total(found.tree, "before")
    assert found.notes == ()


def test_a_model_that_was_compiled() -> None:
    found = pair("a100-2022-diff-control", "a100-2022-diff-test")
    assert set(found.steps["verdict"]) == {"slower"}
    new = found.tree.filter(verdict="new").sort("difference", descending=True)["name"].head(2)
    assert set(new) == {"CompiledFunction", "CompiledFunctionBackward"}
    [copies] = found.kernels.filter(what="memcpy").to_dicts()
    assert (copies["count_before"], copies["count_after"]) == (38, 803)
    told = " ".join(found.notes)
    for word in ("devices differ", "ranks differ", "shapes of inputs differ"):
        assert word in told
    for name in ("tree", "kernels"):
        table = found.tables()[name]
        assert total(table, "difference") == pytest.approx(
            total(table, "after") - total(table, "before")
        )
    assert total(found.tree, "after") == pytest.approx(total(found.kernels, "after"))
    assert set(found.tree["parent"].drop_nulls()) <= set(found.tree["id"])
