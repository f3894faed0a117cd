"""Where the base of all times stands in the JSON of different releases of PyTorch."""

import json

import pytest

pytest.importorskip("torch")

from selftime.capture.trace_file.base_time import with_base_time_first

OF_2_4 = b"""
{
  "schemaVersion": 1,
  "deviceProperties": [
  ],
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "{", "pid": 1, "tid": 1, "ts": 5.250, "dur": 1.000
  }
  ],
  "traceName": "/tmp/trace.json",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000
"""
OF_2_13 = b"""
{
  "schemaVersion": 1,
  "baseTimeNanoseconds": 1790857026000000000,
  "displayTimeUnit": "ms",
  "traceEvents": [
  ],
  "traceName": "/tmp/trace.json"
"""


@pytest.mark.parametrize("tail_bytes", [100, 1_000])
def test_it_comes_first(tail_bytes: int) -> None:
    split_at = max(0, len(OF_2_4) - tail_bytes)
    chunks = [OF_2_4[:split_at]] if split_at else []
    text = b"".join(with_base_time_first(chunks, OF_2_4[split_at:])) + b"}"

    assert next(iter(json.loads(text))) == "baseTimeNanoseconds"
    assert json.loads(text) == json.loads(OF_2_4 + b"}")


@pytest.mark.parametrize("tail_bytes", [50, 1_000])
def test_where_it_is_before_the_events_it_stays(tail_bytes: int) -> None:
    split_at = max(0, len(OF_2_13) - tail_bytes)
    chunks = [OF_2_13[:split_at]] if split_at else []
    assert b"".join(with_base_time_first(chunks, OF_2_13[split_at:])) == OF_2_13
