"""Two programs computed the same, or not, as far as the repair between them may alter results."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from selftime.compare.results.result_comparison import ResultComparison, compare_results
from selftime.compare.results.rounding import UNIT_ROUNDOFF, tolerance
from selftime.run import Run
from selftime.trace import Trace

LOSSES: Final = (2.5, 2.4, 2.2, 2.1, 2.0, 1.9)
SEEDED: Final = {"first": {"random": "unused:1"}, "end": {"random": "unused:1"}}


def recording(values: Iterable[Any] | None, **facts: Any) -> Trace:
    """A recording whose program had these losses; None without `--results`."""
    trace = Trace()
    if values is None:
        return trace
    kept = {"torch_seed": 0, "generators": SEEDED, "losses": rounds(values), **facts}
    return replace(trace, run=Run(facts={"results": kept}))


def rounds(values: Iterable[Any], dtype: str = "float32", draws: str = "same") -> list[Any]:
    return [
        {
            "number": number,
            "draws": draws,
            "tensors": [
                {
                    "dtype": dtype,
                    "shape": list(np.shape(value)),
                    "values": np.ravel(np.array(value, dtype=object)).tolist(),
                }
            ],
        }
        for number, value in enumerate(values)
    ]


def scaled(by: Mapping[int, float]) -> list[float]:
    return [loss * (1 + by.get(number, 0)) for number, loss in enumerate(LOSSES)]


def judged(after: Any, semantics: Any = "neutral", **facts: Any) -> ResultComparison:
    second = after if isinstance(after, Trace) else recording(after, **facts)
    return compare_results(recording(LOSSES), second, semantics)


def test_what_was_not_kept_cannot_be_told() -> None:
    found = judged(None)
    assert found.verdict == "unknown"
    assert found.text == "the second recording keeps no results; record it with `--results`"
    assert judged([]).verdict == "unknown"
    assert compare_results(recording([]), recording([]), "neutral").verdict == "unknown"


def test_equal_to_the_last_bit() -> None:
    found = judged(LOSSES)
    assert (found.verdict, found.rounds, found.difference) == ("equal", 6, 0)
    assert found.text == "equal to the last bit: 6 losses of both programs"


def test_another_order_of_sums_is_within_rounding() -> None:
    found = judged(scaled({3: 1e-7}))
    assert (found.verdict, found.number) == ("within_rounding", 3)
    assert "losses differ at most in loss 4 by 1e-07 of its size" in found.text


def test_a_neutral_repair_must_not_change_results() -> None:
    found = judged(scaled({0: 0.01}))
    assert found.verdict == "differs"
    assert found.reasons == ()
    assert found.text.startswith("the losses differ: loss 1 by 0.0099 of its size")


def test_a_change_of_precision_is_close_in_the_first_round() -> None:
    drift = {0: 1e-7, 1: 1e-4, 2: 3e-4, 3: 8e-4, 4: 2e-3}
    assert judged(scaled(drift), "numerics").verdict == "within_rounding"
    assert judged(scaled({0: 1e-4}), "numerics").verdict == "differs"
    assert judged(scaled(drift), "neutral").verdict == "unknown"


def test_a_neutral_repair_whose_training_drifts_cannot_be_told() -> None:
    found = judged(scaled({1: 1e-4}))
    assert found.verdict == "unknown"
    assert "torch.float64" in found.reasons[-1]


def test_rounds_that_are_equal_do_not_loosen_what_follows() -> None:
    losses = [2.0] * 40
    wrong = [*losses[:35], 2.1, *losses[36:]]
    found = compare_results(recording(losses), recording(wrong), "neutral")
    assert (found.verdict, found.number) == ("differs", 35)


def test_losses_of_another_dtype_are_no_neutral_change() -> None:
    double = recording(None)
    kept = {"torch_seed": 0, "losses": rounds(LOSSES, "float64")}
    double = replace(double, run=Run(facts={"results": kept}))
    assert judged(double).verdict == "differs"
    assert "the dtypes of loss 1 differ" in judged(double).text
    assert judged(double, "numerics").verdict == "equal"


def test_an_unseeded_program_cannot_be_told() -> None:
    found = judged(scaled({0: 0.1}), torch_seed=7)
    assert (found.verdict, len(found.reasons)) == ("unknown", 1)
    assert "record both with `--seed 0`" in found.reasons[0]
    drawn = {"first": {"numpy": "b"}, "end": {"numpy": "c"}}
    before = recording(LOSSES, generators={"first": {"numpy": "a"}, "end": {"numpy": "c"}})
    after = recording(scaled({0: 0.1}), generators=drawn)
    assert compare_results(before, after, "neutral").verdict == "unknown"
    assert judged(LOSSES, torch_seed=7).verdict == "equal"  # then the seed played no part


def test_other_random_numbers_are_a_change_unless_precision_explains_them() -> None:
    other = rounds(scaled({0: 0.1}), draws="other")
    assert judged([], losses=other).verdict == "differs"
    found = judged([], "numerics", losses=other)
    assert found.verdict == "unknown"
    assert "drew other random numbers" in found.reasons[0]


def test_a_change_of_the_training_is_not_compared_value_by_value() -> None:
    found = judged(scaled({0: 0.5, 3: 0.9}), "training")
    assert found.verdict == "unknown"
    assert "finite and of the same order" in found.text
    assert judged([1000.0] * 6, "training").verdict == "differs"
    assert judged([2.0, "nan"], "training").verdict == "differs"
    broken = recording(["nan", "nan"])
    assert compare_results(broken, broken, "training").verdict == "unknown"


def test_what_is_not_finite_is_not_equal() -> None:
    first = recording(["nan", "inf"])
    assert compare_results(first, first, "neutral").verdict != "equal"
    assert judged(["nan", *LOSSES[1:]]).verdict == "differs"


def test_a_gradient_scaler_is_no_difference() -> None:
    assert judged([loss * 65536 for loss in LOSSES], "numerics").verdict == "equal"
    assert judged([loss * 65536 for loss in LOSSES], "neutral").verdict == "differs"


def test_outputs_are_compared_where_there_is_no_loss() -> None:
    values = [np.arange(6.0).reshape(2, 3)] * 3
    before = recording([], outputs=rounds(values))
    same = compare_results(before, recording([], outputs=rounds(values)), "neutral")
    assert (same.verdict, same.compared) == ("equal", "outputs")
    turned = [value.T for value in values]
    wrong = compare_results(before, recording([], outputs=rounds(turned)), "neutral")
    assert wrong.text == "the shapes of output 1 differ: `[[2, 3]]` before, `[[3, 2]]` after"
    assert wrong.verdict == "differs"


def test_a_program_that_does_not_repeat_itself_cannot_be_told() -> None:
    before, again = recording(LOSSES), recording(scaled({2: 0.2}))
    found = compare_results(before, recording(scaled({1: 0.3})), "neutral", again)
    assert found.verdict == "unknown"
    assert found.text.startswith("the first program does not repeat itself: loss 3")
    found = compare_results(before, recording(scaled({1: 0.3})), "neutral", before)
    assert found.verdict == "differs"


@pytest.mark.parametrize(
    "told",
    [
        [],
        {"losses": 3},
        {"losses": [3, None, {"number": "x"}, {"number": 1, "tensors": 5}]},
        {"losses": [{"number": 1, "tensors": [{"dtype": "`x`", "shape": [], "values": [1]}]}]},
        {"losses": [{"number": 1, "tensors": [{"dtype": "f", "shape": 3, "values": "abc"}]}]},
        {"generators": 3, "torch_seed": "x", "failure": "`quoted`"},
    ],
)
def test_what_a_file_says_wrongly_is_left_out(told: Any) -> None:
    trace = replace(recording(None), run=Run(facts={"results": told}))
    assert compare_results(trace, trace, "neutral").verdict == "unknown"


@pytest.mark.parametrize("precision", UNIT_ROUNDOFF)
def test_a_tolerance_grows_and_is_never_below_the_roundoff(precision: str) -> None:
    for is_neutral in (True, False):
        allowed = [tolerance(precision, number, is_neutral=is_neutral) for number in range(80)]
        assert allowed[0] >= UNIT_ROUNDOFF[precision]
        assert allowed == sorted(allowed)
