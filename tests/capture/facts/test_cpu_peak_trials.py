"""What one thread of this CPU can do is known though other programs share its core."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.torch

SHARED_CORE = """
import multiprocessing, os, torch
from selftime.capture.facts.cpu_peak_trials import measured_cpu_peak_rates

def work():
    while os.getppid() == parent:
        sum(range(1000))

parent = os.getpid()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
torch.set_num_threads(1)
others = [multiprocessing.get_context("fork").Process(target=work, daemon=True) for _ in range(2)]
for other in others:
    other.start()
rates = measured_cpu_peak_rates()
print(rates.threads, min(rates.operations.values()) > 1e8, len(rates.copies))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned")
def test_one_thread_is_measured_on_a_core_that_others_share() -> None:
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", SHARED_CORE],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", "1 True 4\n")
