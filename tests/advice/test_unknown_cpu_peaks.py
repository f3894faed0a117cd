"""Why it is unknown how near the peak of a CPU work runs."""

from dataclasses import replace

from selftime.advice import advise
from selftime.testing import sketch


def test_the_reason_why_the_cpu_could_not_be_measured_is_in_the_account() -> None:
    drawing = """
        column = 1 ms
        mark 1 | ssssssssssssssssssss
        cpu 1  | rrrrrrrrrrrrrrrrrrrr
        s = ProfilerStep#1
        r = aten::relu; input_shapes = [[800000]]; input_types = ["float"]; line = net.py:4 f
        run | 1 cpu thread: float32 600 GFLOP/s, copies 24 GB/s
    """
    trace = sketch(drawing)
    facts = {**trace.run.facts, "cpu_peaks_unknown": "only 12 MiB of memory are free"}
    account = advise(replace(trace, run=replace(trace.run, cpu_peaks=None, facts=facts))).account
    assert account is not None
    assert "is unknown, as only 12 MiB of memory are free: by" in account.rows[0].text
