"""Corrections of the JSON as PyTorch 2.8 lays it out: most of an event stands in one line."""

from typing import Any

import pytest

pytest.importorskip("torch")

from selftime.capture.trace_file.trace_corrections import TraceCorrections

OF_2_8 = b"""{
  "baseTimeNanoseconds": 1000,
  "traceEvents": [
  {
    "ph": "X", "cat": "user_annotation", "name": "selftime: own work", "pid": 7, "tid": 7,
    "ts": 5.250, "dur": 1.000,
    "args": {
      "External id": 1
    }
  }
  ]
}"""


class OwnWork:
    def name(self) -> str:
        return "selftime: own work"

    def device_resource_id(self) -> int:
        return 7

    def start_ns(self) -> int:
        return 1_000 + 5_250

    def end_ns(self) -> int:
        return 1_000 + 6_250

    def activity_type(self) -> str:
        return "user_annotation"


def test_own_work_is_none_of_the_programs() -> None:
    events: list[Any] = [OwnWork()]
    text = b"".join(TraceCorrections.from_events(events).correct_json([OF_2_8]))
    assert text == OF_2_8.replace(b'"cat": "user_annotation"', b'"cat": "overhead"')
