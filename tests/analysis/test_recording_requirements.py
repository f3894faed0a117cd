"""What a recording lacks, and how to record it."""

from typing import Any

import pytest

from selftime.analysis.recording_requirements import RecordingNeed, missing_requirement_sentences
from selftime.testing import sketch


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ({}, "input shapes: record with `record_shapes=True`, or with `selftime run`"),
        (
            {"left_out": {"shapes": "--hold 5"}},
            "input shapes: `selftime run` left them out: record with `selftime run --hold 5`",
        ),
        (
            {"left_out": {"shapes": None}},
            "input shapes: `selftime run` left them out, since they do not fit into the memory",
        ),
        (
            {"left_out": {"stacks": "--hold 5"}},
            "input shapes: record with `record_shapes=True`, or with `selftime run`",
        ),
    ],
)
def test_what_selftime_run_left_out_is_recorded_with_its_option(
    steps: dict[str, Any], sentence: str
) -> None:
    trace = sketch("cpu 1 | aaa", metadata={"selftime": {"steps": steps}})
    assert missing_requirement_sentences(trace, ("shapes",)) == [sentence]


@pytest.mark.parametrize(
    ("drawing", "lacking"),
    [("cpu 1 | aaa", []), ("gpu 7 | kkk", ["operators"]), ("", ["operators", "work"])],
)
def test_work_is_operators_or_what_a_device_did(drawing: str, lacking: list[str]) -> None:
    """A profile divides the time of either; only operators have shapes and modules."""
    trace = sketch(drawing)
    needs: tuple[RecordingNeed, ...] = ("operators", "work")
    assert [need for need in needs if missing_requirement_sentences(trace, (need,))] == lacking
