"""Counters in the timeline: their peaks, what a device does, queues and memory."""

import polars as pl
import pytest

from selftime.testing import sketch
from selftime.views.timeline import timeline

US = 1_000


def test_counters_keep_their_peaks_at_any_width() -> None:
    trace = sketch("""
        A = a; bytes = 100
        B = b; bytes = 5000
        cpu 1    | oooooooooo
        memory 1 | A B b     a
    """)
    columns = ("name", "start", "duration", "value", "low", "high", "count")
    table = timeline(trace, tracks="counters", end=100 * US, pixels=1).select(columns)

    assert table.rows() == [
        ("CPU allocated", 0, 100 * US, pytest.approx(1100.0), 100.0, 5100.0, 3),
    ]


def test_memory_of_a_device_is_a_counter_with_its_number() -> None:
    trace = sketch("""
        A = a; bytes = 100; device_type = 1; device = 1
        cpu 1    | oooooooooo
        memory 1 | A         a
    """)
    table = timeline(trace, what="tracks").filter(category="memory")
    assert table.select("name", "device", "high").rows() == [("CUDA 1 allocated", 1, 100.0)]


def test_a_device_is_busy_while_it_works_and_a_queue_holds_what_is_not_done() -> None:
    trace = sketch("""
        call 1 | k m
        gpu 7  |   kkkk
        gpu 8  |     mmmm
    """)
    table = timeline(trace, end=80 * US, pixels=1).filter(pl.col("kind") == "counter")

    assert table.select("category", "name", "value", "low", "high").rows() == [
        ("utilization", "device 0 percent busy", 100.0, 100.0, 100.0),
        ("queue", "device 0 stream 7 queued", pytest.approx(60 / 80), 0.0, 1.0),
        ("queue", "device 0 stream 8 queued", 1.0, 1.0, 1.0),
    ]
