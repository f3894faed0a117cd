"""Fixtures for pytest that hold a step to its promises: `assert_no_sync`, `assert_step_budget`.

pytest imports this at its start, so it imports nothing else: torch and the rest come with the first
test that asks for a fixture.
"""

# ruff: noqa: PLC0415 - see above
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selftime.capture.no_sync import Waits
    from selftime.frameworks.budgets import Measurement


class _NoSync:
    """A block in which the host may not wait for the device."""

    def __init__(self, waits: "Waits") -> None:
        self._waits = waits

    def __call__(self) -> "_NoSync":
        return self

    def __enter__(self) -> None:
        self._waits.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        told = self._waits.end()
        if kind is None and told is not None:
            raise AssertionError(told)


@pytest.fixture
def assert_no_sync() -> Iterator[_NoSync]:
    """A block that fails if lines in it make the host wait for the device.

    It is written `with assert_no_sync():`. Without a GPU, a CUDA device is pretended for the whole
    test: put the model on `cuda` before the block, as ever. With one, torch's own synchronisation
    warnings tell.
    """
    from selftime.capture.no_sync import watching

    with watching() as waits:
        yield _NoSync(waits)


class _StepBudget:
    """A loop whose steps keep within a budget; `step()` at the end of each."""

    def __init__(self, measurement: "Measurement") -> None:
        self._measurement = measurement

    def step(self) -> None:
        """A step has ended and another begins."""
        self._measurement.step()

    def __enter__(self) -> "_StepBudget":  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        self._measurement.stop()
        if kind is None:
            _judge(self._measurement)


@pytest.fixture
def assert_step_budget() -> Callable[..., Any]:
    """`assert_step_budget(step, operators=120)` fails if a call of `step` takes more than that.

    Limits: host_ms, operators, launches, syncs, copies, allocations, peak_bytes. Without a function
    it is for `with`, around a loop that ends each round with `step()` of what `with` gives.
    """
    from selftime.frameworks.budgets import Budget, Measurement

    def check(step: Callable[[], object] | None = None, **limits: Any) -> Any:
        __tracebackhide__ = True
        measurement = Measurement(Budget(**limits))
        if step is None:
            return _StepBudget(measurement)
        with _StepBudget(measurement) as budget:
            while not measurement.done:
                step()
                budget.step()
        return None

    return check


def _judge(measurement: "Measurement") -> None:
    from selftime.frameworks.budgets import OverBudget, Unjudged

    __tracebackhide__ = True
    try:
        measurement.judge()
    except OverBudget as error:
        raise AssertionError(str(error)) from None
    except Unjudged as error:
        pytest.skip(str(error))
