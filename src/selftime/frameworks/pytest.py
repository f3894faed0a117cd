"""Provides the pytest fixtures `assert_no_sync` and `assert_step_budget`.

pytest imports this module at its start; torch is imported by the first test that uses a fixture.
"""

# ruff: noqa: PLC0415 - see above
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selftime.capture.host_wait_detection import HostWaitDetector
    from selftime.frameworks.step_budgets import StepMeasurement


class _NoSyncContext:
    """Context manager that makes a test fail if the host waits for the device in its block."""

    def __init__(self, host_wait_detector: "HostWaitDetector") -> None:
        self._waits = host_wait_detector

    def __call__(self) -> "_NoSyncContext":
        return self

    def __enter__(self) -> None:
        self._waits.begin()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        failure = self._waits.end()
        if error_type is None and failure is not None:
            raise AssertionError(failure)


@pytest.fixture
def assert_no_sync() -> Iterator[_NoSyncContext]:
    """Yields a context manager: the test fails if the host waits for the device in its block.

    Without a GPU, a CUDA device is simulated for the whole test: move the model to `cuda` before
    the block, as usual. With a GPU, torch's own synchronization warnings are used.
    """
    from selftime.capture.host_wait_detection import host_wait_detector

    with host_wait_detector() as detector:
        yield _NoSyncContext(detector)


class _StepBudgetContext:
    """Context manager around a loop; the loop calls `step()` at the end of each iteration."""

    def __init__(self, measurement: "StepMeasurement") -> None:
        self._measurement = measurement

    def step(self) -> None:
        """Marks the end of one step and the start of the next step."""
        self._measurement.step()

    def __enter__(self) -> "_StepBudgetContext":  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        self._measurement.stop_recording()
        if error_type is None:
            _fail_if_over_budget_skip_if_unknown(self._measurement)


@pytest.fixture
def assert_step_budget() -> Callable[..., Any]:
    """Returns a function: `assert_step_budget(step, operators=120)` fails if `step()` exceeds 120.

    Limits: host_ms, operators, launches, syncs, copies, allocations, peak_bytes. Without a function
    it returns a context manager for a loop: call its `step()` at the end of each iteration.
    """
    from selftime.frameworks.step_budgets import StepBudget, StepMeasurement

    def check_step_budget(step: Callable[[], object] | None = None, **limits: Any) -> Any:
        __tracebackhide__ = True
        measurement = StepMeasurement(StepBudget(**limits))
        if step is None:
            return _StepBudgetContext(measurement)
        with _StepBudgetContext(measurement) as budget:
            while not measurement.done:
                step()
                budget.step()
        return None

    return check_step_budget


def _fail_if_over_budget_skip_if_unknown(measurement: "StepMeasurement") -> None:
    from selftime.frameworks.step_budgets import BudgetCannotBeJudged, StepOverBudget

    __tracebackhide__ = True
    try:
        measurement.raise_if_over_budget()
    except StepOverBudget as error:
        raise AssertionError(str(error)) from None
    except BudgetCannotBeJudged as error:
        pytest.skip(str(error))
