"""Says whether two programs computed the same, as far as a change of the one may alter results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from selftime.compare.comparability import Comparability, property_differences
from selftime.compare.results.kept_values import KeptRound, KeptValues, kept_values
from selftime.compare.results.rounding import MAX_TOLERANCE, computing_format, tolerance
from selftime.trace import Trace

ResultVerdict: TypeAlias = Literal["equal", "within_rounding", "differs", "unknown"]
What: TypeAlias = Literal["losses", "outputs"]
Semantics: TypeAlias = Literal["neutral", "numerics", "training"]

_MAX_RATIO_OF_LIKE_LOSSES: Final = 10.0
"""Ratio of two programs' median losses up to which these are of the same order."""
_MIN_SCALE_OF_GRADIENT_SCALER: Final = 16.0
_WHAT: Final[dict[What, str]] = {"losses": "loss", "outputs": "output"}
"""What is compared, and one of it in words; losses rather than outputs."""


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """What two programs computed, compared round by round."""

    verdict: ResultVerdict
    semantics: Semantics
    """What the repair may change in the results, by the badge of its findings."""
    compared: What | None
    rounds: int
    """Number of rounds that both recordings have, and that were judged."""
    difference: float | None
    """Largest relative difference, measured by what is allowed in its round; None if there are no
    values to compare."""
    allowed: float | None
    """The relative difference that rounding may make in that round."""
    number: int | None
    """Number of that round, from 0."""
    precision: str | None
    """The coarsest format that the programs compute in."""
    text: str
    reasons: tuple[str, ...] = ()
    """What else may explain a difference, and what to do; one sentence each."""


@dataclass(frozen=True, slots=True)
class _Difference:
    """The largest difference of the rounds of two recordings, measured by what is allowed."""

    rounds: int
    number: int
    relative: float
    allowed: float
    allowed_of_numerics: float
    """What rounding may make where the change may compute in another precision."""

    @property
    def is_within(self) -> bool:
        return self.relative <= self.allowed


def compare_results(
    before: Trace, after: Trace, semantics: Semantics, repeated: Trace | None = None
) -> ResultComparison:
    """Returns whether two programs computed the same.

    Args:
        before: The recording of the program before the change.
        after: The one after it.
        semantics: What the change may alter.
        repeated: Another recording of the first program, which shows how far it repeats itself.
    """
    kept = kept_values(before), kept_values(after)
    missing = [which for which, one in zip(("first", "second"), kept, strict=True) if one is None]
    if missing:
        text = f"the {missing[0]} recording keeps no results; record it with `--results`"
        return _unknown(semantics, text)
    first, second = kept
    assert first is not None and second is not None  # noqa: PT018, S101 - as `missing` is empty
    what = next((name for name in _WHAT if first.rounds(name)), None)
    if what is None or not second.rounds(what):
        failure = first.failure or second.failure
        return _unknown(semantics, _nothing_kept_text(first, failure))
    judge = _Judge(before, after, first, second, semantics, what)
    if repeated is not None:
        own = kept_values(repeated)
        if own is None or not own.rounds(what):
            return _unknown(semantics, "the repeated recording keeps no results to compare")
        same = _Judge(before, repeated, first, own, semantics, what).difference()
        if not isinstance(same, str) and not same.is_within:
            reason = "seed it with `--seed 0`, and see that it draws from no other generator"
            text = (
                f"the first program does not repeat itself: {_WHAT[what]} {same.number + 1} of two "
                f"runs differs by {same.relative:.2g}"
            )
            return _unknown(semantics, text, reason)
    return judge.comparison()


def _unknown(semantics: Semantics, text: str, *reasons: str) -> ResultComparison:
    return ResultComparison(
        "unknown", semantics, None, 0, None, None, None, None, text, tuple(reasons)
    )


def _nothing_kept_text(first: KeptValues, failure: str | None) -> str:
    if failure is not None:
        return f"the kept results could not be read at the program's end: `{failure}`"
    if not first.losses and not first.outputs:
        return "the first program made no backward pass, and called no module, that was seen"
    return "only the first program has backward passes, or calls of modules, that were seen"


@dataclass(frozen=True, slots=True)
class _Judge:
    """Two recordings whose kept results are judged."""

    before: Trace
    after: Trace
    first: KeptValues
    second: KeptValues
    semantics: Semantics
    what: What

    def comparison(self) -> ResultComparison:
        if self.semantics == "training":
            return self._order_of_magnitude()
        found = self.difference()
        if isinstance(found, str):
            return self._result("differs" if self._is_strict else "unknown", found)
        word = _WHAT[self.what]
        if found.relative == 0:
            count = f"{found.rounds} {self.what if found.rounds > 1 else word}"
            return self._result("equal", f"equal to the last bit: {count} of both programs", found)
        which = f"{word} {found.number + 1} by {found.relative:.2g} of its size"
        if found.is_within:
            text = (
                f"equal within rounding: {self.what} differ at most in {which}, where rounding to "
                f"{self.precision} may make {found.allowed:.2g}; {found.rounds} were compared"
            )
            return self._result("within_rounding", text, found)
        text = f"the {self.what} differ: {which}; rounding may make {found.allowed:.2g}"
        reasons = tuple(self._reasons(found))
        if not reasons:
            return self._result("differs", text, found)
        return self._result("unknown", f"cannot tell: {text}", found, reasons)

    @property
    def _is_strict(self) -> bool:
        return self.semantics == "neutral"

    @property
    def precision(self) -> str | None:
        """Returns the coarsest format that either program computes in."""
        formats = [
            computing_format(trace, _dtypes(kept.rounds(self.what)))
            for trace, kept in ((self.before, self.first), (self.after, self.second))
        ]
        known = [one for one in formats if one is not None]
        return max(known, key=lambda one: tolerance(one, 0, is_neutral=True), default=None)

    def difference(self) -> _Difference | str:
        """Returns the largest difference; a sentence where values cannot be held side by side."""
        old, new = self.first.rounds(self.what), self.second.rounds(self.what)
        numbers = sorted(old.keys() & new.keys())
        precision = self.precision or "float32"
        found: list[_Difference] = []
        last_equal = 0
        for number in numbers:
            since = number - last_equal
            allowed = tolerance(precision, since, is_neutral=self._is_strict)
            wide = tolerance(precision, since, is_neutral=False)
            if allowed > MAX_TOLERANCE and found:
                break
            relative = self._round_difference(old[number], new[number], allowed, number)
            if isinstance(relative, str):
                return relative
            found.append(_Difference(len(found) + 1, number, relative, allowed, wide))
            if not any(one.relative for one in found):
                last_equal = number
        if not found:
            return f"no round has {self.what} in both recordings; record both for more rounds"
        first_beyond = next((one for one in found if not one.is_within), None)
        most = first_beyond or max(found, key=lambda one: one.relative / one.allowed)
        return replace(most, rounds=len(found))

    def _round_difference(
        self, old: KeptRound, new: KeptRound, allowed: float, number: int
    ) -> float | str:
        which = f"{_WHAT[self.what]} {number + 1}"
        if [one.shape for one in old.tensors] != [one.shape for one in new.tensors]:
            return f"the shapes of {which} differ: {_shapes(old)} before, {_shapes(new)} after"
        most = 0.0
        for one, other in zip(old.tensors, new.tensors, strict=True):
            if self._is_strict and one.dtype != other.dtype:
                return f"the dtypes of {which} differ: `{one.dtype}` before, `{other.dtype}` after"
            if one.values.shape != other.values.shape:
                return f"{which} of both programs has another number of kept values"
            if not np.isfinite(one.values).all():
                return f"{which} of the first program is not finite, so nothing can be compared"
            if not np.isfinite(other.values).all():
                return f"{which} of the second program is not finite"
            values = other.values
            if self.what == "losses" and not self._is_strict:
                values = _without_gradient_scale(one.values, values, allowed)
            scale = float(max(np.abs(one.values).max(initial=0), np.abs(values).max(initial=0)))
            gap = float(np.abs(one.values - values).max(initial=0))
            most = max(most, gap / scale if scale else 0.0)
        return most

    def _reasons(self, found: _Difference) -> Iterator[str]:
        """Yields what else than the change may be why results differ, with what to do."""
        if self.first.torch_seed != self.second.torch_seed:
            yield "PyTorch's generator had another seed in each run; record both with `--seed 0`"
            return
        for name in ("random", "numpy"):
            if self._is_drawn_unseeded(name):
                yield f"the generator of `{name}` was not seeded; record both with `--seed 0`"
                return
        drawn = self._first_other_draw()
        if drawn is not None and drawn <= found.number and not self._is_strict:
            yield (
                f"before {_WHAT[self.what]} {drawn + 1} the second program drew other random "
                "numbers (initial values, dropout, the order of batches); let both draw alike, and "
                "record them again"
            )
        if self._is_strict and found.relative <= found.allowed_of_numerics:
            yield from self._reasons_for_rounding()
            yield (
                "the optimizer may have made more of another order of sums; run both in double "
                "precision (`torch.set_default_dtype(torch.float64)`), where only a real "
                "difference stays"
            )

    def _reasons_for_rounding(self) -> Iterator[str]:
        sides = (
            replace(Comparability.from_trace(trace), recorded=())
            for trace in (self.before, self.after)
        )
        for text in property_differences(*sides):
            yield f"{text}; record both on the same machine in the same way"
        if self.after.devices.height and not (
            self.first.deterministic and self.second.deterministic
        ):
            yield (
                "operators of the device may sum in another order in each run; record both with "
                "`torch.use_deterministic_algorithms(True)`"
            )

    def _is_drawn_unseeded(self, name: str) -> bool:
        if not (self.first.uses_generator(name) and self.second.uses_generator(name)):
            return False
        old, new = (
            kept.generators.get("first", {}).get(name) for kept in (self.first, self.second)
        )
        return old != new

    def _first_other_draw(self) -> int | None:
        old, new = self.first.rounds(self.what), self.second.rounds(self.what)
        return next(
            (n for n in sorted(old.keys() & new.keys()) if old[n].draws != new[n].draws), None
        )

    def _order_of_magnitude(self) -> ResultComparison:
        """Compares nothing but whether the results are finite, and of the same order."""
        old, new = (
            np.concatenate(
                [t.values for one in kept.rounds(self.what).values() for t in one.tensors]
            )
            for kept in (self.first, self.second)
        )
        if not np.isfinite(old).all():
            text = f"{self.what} of the first program are not finite, so nothing can be compared"
            return self._result("unknown", text)
        if not np.isfinite(new).all():
            return self._result("differs", f"{self.what} of the second program are not finite")
        sizes = [float(np.median(np.abs(one))) for one in (old, new)]
        ratio = sizes[1] / sizes[0] if sizes[0] else 1.0
        if (
            self.what == "losses"
            and not 1 / _MAX_RATIO_OF_LIKE_LOSSES <= ratio <= _MAX_RATIO_OF_LIKE_LOSSES
        ):
            text = f"the median of the losses is {sizes[0]:.3g} before, {sizes[1]:.3g} after"
            return self._result("differs", text)
        return self._result(
            "unknown",
            "cannot tell: the repair changes the training, so its results cannot be compared value "
            f"by value; {self.what} are finite and of the same order. Train both to the end, and "
            "compare what they reach",
        )

    def _result(
        self,
        verdict: ResultVerdict,
        text: str,
        found: _Difference | None = None,
        reasons: tuple[str, ...] = (),
    ) -> ResultComparison:
        return ResultComparison(
            verdict,
            self.semantics,
            self.what,
            0 if found is None else found.rounds,
            None if found is None else found.relative,
            None if found is None else found.allowed,
            None if found is None else found.number,
            self.precision,
            text,
            reasons,
        )


def _dtypes(rounds: Mapping[int, KeptRound]) -> set[str]:
    return {tensor.dtype for one in rounds.values() for tensor in one.tensors}


def _shapes(kept: KeptRound) -> str:
    return f"`{[list(one.shape) for one in kept.tensors]}`"


def _without_gradient_scale(
    old: NDArray[np.float64], new: NDArray[np.float64], allowed: float
) -> NDArray[np.float64]:
    """Returns losses without the power of two that a gradient scaler multiplies them by."""
    if old.size != 1 or not old[0] or new[0] / old[0] < _MIN_SCALE_OF_GRADIENT_SCALER:
        return new
    scale = 2.0 ** np.round(np.log2(new[0] / old[0]))
    is_scaled = abs(new[0] / scale - old[0]) <= allowed * abs(old[0])
    return new / scale if is_scaled else new
