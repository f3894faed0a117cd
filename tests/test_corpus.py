"""Entries of the corpus are well formed, run, and compute what their twins compute."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

torch = pytest.importorskip("torch")

from entries import Entry, Order, entries, entry  # noqa: E402 - only where torch is
from measuring import Gain, Pair, Runner, gain, is_same, runner  # noqa: E402 - likewise
from results import Result  # noqa: E402 - likewise
from scores import Share, scores  # noqa: E402 - likewise
from tables import as_json, page  # noqa: E402 - likewise

from selftime.advice.rule_definition import Finding, Fix, Saving, Where  # noqa: E402 - likewise
from selftime.advice.rule_registry import rules_by_name  # noqa: E402 - likewise

pytestmark = pytest.mark.torch

KEYS: Final = {
    *("labels", "labels_gpu", "forbid", "forbid_gpu", "allow", "allow_gpu"),
    *("device", "equivalence", "steps", "records_times", "knobs", "gpu", "dry"),
}
DEVICES: Final = {"cpu", "gpu", "cpu/gpu", "2proc"}
EQUIVALENCES: Final = {"allclose", "statistical", "none"}
ENTRIES: Final = entries()
EACH: Final = pytest.mark.parametrize("about", ENTRIES, ids=lambda about: about.name)


@pytest.fixture(scope="module")
def run() -> Iterator[Runner]:
    with runner() as started:
        yield started


def labelled(about: Entry) -> set[str]:
    return {*about.labels(gpu=False), *about.labels(gpu=True)}


@EACH
def test_what_an_entry_says_of_itself(about: Entry) -> None:
    assert set(about.told) <= KEYS
    assert about.device in DEVICES
    assert about.equivalence in EQUIVALENCES
    for gpu in (False, True):
        true = {*about.labels(gpu=gpu), *about.allow(gpu=gpu)}
        named = true | about.forbid(gpu=gpu)
        assert all(re.fullmatch(r"[A-L]\d+", label) for label in named)
        assert not about.forbid(gpu=gpu) & true
    for table in ("knobs", "gpu", "dry"):
        for low, high in about.told.get(table, {}).values():
            assert isinstance(low, int)
            assert isinstance(high, int)
            assert low <= high
    assert set(about.told.get("gpu", {})) <= set(about.told.get("knobs", {}))
    assert set(about.told.get("dry", {})) <= set(about.told.get("knobs", {}))
    assert about.device != "gpu" or "dry" in about.told, "a trial on a CPU needs small sizes"


@EACH
def test_the_line_to_be_named_is_marked(about: Entry) -> None:
    planted = set(about.planted().values())
    assert bool(planted) == bool(labelled(about))
    assert planted <= labelled(about)
    assert not about.planted("good")
    assert len(about.twins) in {1, 1 + len(about.labels(gpu=False))}


@EACH
def test_only_a_control_is_its_own_twin(about: Entry) -> None:
    programs = sorted(about.program("bad").parent.glob("*.py"))
    assert len({path.read_text() for path in programs}) == len(programs), "one is another's copy"
    if about.is_its_own_twin:
        assert programs == [about.program("bad")]
        assert not labelled(about)
    for which in ("bad", *about.twins):
        assert about.program(which) in programs


@EACH
def test_an_entry_is_of_some_size_drawn_by_its_seed(about: Entry) -> None:
    ranges = about.ranges(gpu=False)
    for seed in range(3):
        knobs = about.knobs(seed, gpu=False)
        assert knobs == about.knobs(seed, gpu=False)
        assert all(low <= knobs[name] <= high for name, (low, high) in ranges.items())


@EACH
@pytest.mark.sweep(2)
def test_twins_run_and_compute_the_same(about: Entry, run: Runner) -> None:
    first, *others = (
        run(Order(about.name, which, 0, sizes="dry", steps=1))["outputs"]
        for which in ("bad", *about.twins)
    )
    for other in others:
        assert is_same(about, first, other) is not False


def test_about_three_in_ten_are_held_out() -> None:
    names = [replace(ENTRIES[0], name=f"program {n}") for n in range(1_000)]
    assert 250 < sum(about.is_held_out for about in names) < 350


def test_labels_are_covered_by_rules() -> None:
    covered = {label for rule in rules_by_name().values() for label in rule.covers}
    assert {label for about in ENTRIES for label in labelled(about)} - {"I4"} <= covered


def test_a_gain_has_the_interval_of_its_pairs() -> None:
    found = gain((30e6, 33e6, 36e6), (10e6, 11e6, 12e6))
    assert (found.before_ms, found.after_ms, found.saved_ms) == (33, 11, 22)
    assert (found.speedup, found.slowest, found.fastest) == pytest.approx((3, 3, 3))
    assert (found.low_ms, found.high_ms) == (20, 24)
    assert found.is_sure
    assert not gain((10e6, 9e6, 11e6), (10e6, 10e6, 10e6)).is_sure


def told(equivalence: str) -> Entry:
    return Entry("some", {"equivalence": equivalence})


def test_equal_outputs() -> None:
    one, near, other = [[1.0, 2.0], [3.0]], [[1.0, 2.000_01], [3.0]], [[1.0, 2.1], [3.0]]
    assert is_same(told("allclose"), one, near)
    assert is_same(told("allclose"), one, other) is False
    assert is_same(told("allclose"), one, [[1.0], [3.0]]) is False
    assert is_same(told("statistical"), one, other)
    assert is_same(told("statistical"), [[1.0, 1.1]], [[5.0, 5.1]]) is False
    assert is_same(told("none"), one, other) is None
    assert is_same(told("allclose"), [[], []], [[], []]) is None


def finding(label: str, line: int | None, saving: Saving, file: str = "bad.py") -> Finding:
    return Finding(
        rule=f"rule_{label}",
        covers=(label,),
        title="Something.",
        where=Where(file, line, "step", "stack"),
        saving=saving,
        confidence="high",
        fix=Fix("Do so."),
    )


def saving(estimate: float, upper: float) -> Saving:
    return Saving.of_step(
        100.0, estimate, method="replay", low_ms=0.75 * estimate, high_ms=upper, upper_ms=upper
    )


def result(name: str, findings: list[Finding], after_ms: float) -> Result:
    about = entry(name)
    pair = Pair((40e6, 40e6, 40e6), {"good": (after_ms * 1e6,) * 3}, is_same=True)
    labels = set(about.labels(gpu=False))
    promised = (f.saving.estimate_ms for f in findings if labels & set(f.covers))
    together = {"good": next(promised, None)}
    return Result(
        about,
        0,
        gpu=False,
        pair=pair,
        findings=tuple(findings),
        together_ms=together,
        joint_ms=None,
        first_line="40 ms a step, bound by computing",
    )


def test_scores() -> None:
    [line] = entry("loop_index").planted()
    right = result("loop_index", [finding("D3", line, saving(20, 21))], 20)
    near = result("loop_index", [finding("D3", line - 1, saving(10, 12))], 20)
    missed = result("loop_index", [finding("J1", line, saving(20, 30))], 20)
    calm = result("optimised_mlp", [], 40)
    accused = result("optimised_mlp", [finding("D3", None, saving(1, 1))], 40)
    found = scores([right, near, missed, calm, accused])
    assert (found.programs, found.controls) == (3, 2)
    assert (found.precision, found.recall) == (Share(2, 4), Share(2, 3))
    assert (found.top_cause, found.gains) == (Share(2, 3), Share(3, 3))
    assert (found.line_exact, found.line_function) == (Share(1, 2), Share(2, 2))
    assert found.alarms_a_control == 0.5
    assert (found.covered, found.above) == (Share(1, 2), Share(1, 2))
    assert found.error == pytest.approx(2**0.5)


def test_what_a_kind_of_machine_must_show_is_a_fault_on_the_other() -> None:
    """A wait for a device is none on a CPU, however surely the repair is faster there."""
    said = finding("B5", None, saving(20, 21))
    on_cpu = result("seed3_masked_loss", [said], 20)
    assert on_cpu.wrong == (said,)
    assert on_cpu.forbidden == {"B5"}
    found = scores([on_cpu])
    assert (found.programs, found.controls, found.forbidden) == (0, 1, 1)
    on_gpu = replace(on_cpu, gpu=True)
    assert not on_gpu.wrong
    assert not on_gpu.forbidden
    assert scores([on_gpu]).recall == Share(1, 4)


def test_a_gain_that_is_not_sure_holds_nothing_against_a_promise() -> None:
    [line] = entry("loop_index").planted()
    same = result("loop_index", [finding("D3", line, saving(20, 21))], 40)
    assert list(same.predictions()) == []
    assert scores([same]).error is None
    assert scores([same]).recall == Share(1, 1)


def test_the_page_and_the_json_hold_every_result() -> None:
    results = [result("loop_index", [], 20), result("optimised_mlp", [], 40)]
    text = page(results, ["no_amp"])
    assert all(name in text for name in ("loop_index", "optimised_mlp", "no_amp"))
    assert "| loop_index | D3 | 40 ms a step, bound by computing |" in text
    answer = json.loads(as_json(results, ["no_amp"]))
    assert [found["entry"] for found in answer["results"]] == ["loop_index", "optimised_mlp"]
    assert answer["scores"]["recall"] == {"part": 0, "whole": 1}


def test_a_promise_is_kept_as_verify_keeps_it() -> None:
    kept = result("loop_index", [finding("D3", 3, saving(20, 21))], 20).verification()
    assert kept is not None
    line = json.loads(kept.to_json())
    assert line["format"] == "selftime.verification/1"
    assert line["gone"][0]["method"] == "replay"
    assert line["achieved"]["saved_ms"] == 20


def test_unknown_entries_are_refused(run: Runner) -> None:
    with pytest.raises(SystemExit, match="no entry of the corpus"):
        entry("nothing")
    with pytest.raises(SystemExit, match="failed"):
        run(Order("loop_index", "worse", 0))


def test_a_program_is_recorded(run: Runner, tmp_path: Path) -> None:
    found = run(Order("loop_index", "bad", 0, record=str(tmp_path), sizes="dry"))
    assert Path(found["trace"]).is_file()
    assert isinstance(gain((1.0,), (2.0,)), Gain)
