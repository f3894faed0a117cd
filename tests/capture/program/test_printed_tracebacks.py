"""A traceback that a process of the program prints is the one that it prints without selftime."""

import io
import os
import re
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING

import pytest
from tests.capture.program.test_own_frames import drawn, nothing, program

from selftime.capture.program.printed_tracebacks import hide_own_frames_in_printed_tracebacks

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

STEPS = """
import sys
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

def fail():
    raise ValueError("boom")

def work(*_):
    weight = torch.nn.Parameter(torch.ones(2))
    torch.optim.SGD([weight], lr=0.1).step(fail)  # selftime wraps `step`

class Failing(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, number):
        work()

def in_process(method):
    child = mp.get_context(method).Process(target=work)
    child.start()
    child.join()

def in_loader(method):
    list(DataLoader(Failing(), 1, num_workers=1, multiprocessing_context=method))

def in_pool(method):
    with mp.get_context(method).Pool(1) as pool:
        pool.map(work, [1])

def in_program():
    import subprocess
    subprocess.run([sys.executable, __file__, "work"])

def caught():
    import logging
    try:
        work()
    except ValueError:
        logging.exception("caught")

if __name__ == "__main__":
    name, *words = sys.argv[1:]
    globals()[name](*words)
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    "words",
    [
        ("in_process", "spawn"),
        ("in_process", "fork"),
        ("in_loader", "fork"),
        ("in_loader", "spawn"),
        ("in_pool", "fork"),
        ("in_program",),
        ("caught",),
    ],
    ids=" ".join,
)
@pytest.mark.sweep(1)
def test_a_process_prints_the_traceback_that_it_would_print(
    record_from_the_start: "Runner", words: tuple[str, ...]
) -> None:
    record = record_from_the_start
    script = record.write(STEPS)
    plain = subprocess.run(  # noqa: S603 - a test's own program
        [sys.executable, script, *words],
        cwd=record.folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    process = record.start("script", script, *words)
    _, stderr = process.communicate(timeout=120)

    assert "ValueError: boom" in stderr
    assert without_numbers(stderr) == without_numbers(plain.stderr)
    assert process.wait() == plain.returncode


def without_numbers(text: str) -> str:
    """Leaves out numbers of processes."""
    return re.sub(r"process \d+|pid\(s\) \d+", "", text)


def printed(error: BaseException) -> list[str]:
    text = io.StringIO()
    traceback.print_exception(error, file=text)
    return re.findall(r"in (\S+)\n", text.getvalue())


def test_formatting_leaves_selftime_out_also_of_a_part() -> None:
    hide_own_frames_in_printed_tracebacks()
    step = drawn(nothing)["wrapped"](fail_with_context)
    with pytest.raises(KeyError) as caught:
        program(step)
    part = caught.value.__traceback__
    assert part is not None
    below = "".join(traceback.format_exception(KeyError, caught.value, part.tb_next))

    assert re.findall(r"in (\S+)\n", below) == [
        "fail_with_context",
        "program",
        "fail_with_context",
    ]
    assert printed(caught.value)[-2:] == ["program", "fail_with_context"]


def fail_with_context() -> None:
    try:
        int("")
    except ValueError:
        raise KeyError  # noqa: B904 - to have a context


def test_what_selftime_has_no_part_in_is_not_touched() -> None:
    hide_own_frames_in_printed_tracebacks()
    with pytest.raises(KeyError) as caught:
        program(fail_with_context)
    before = caught.value.__traceback__
    names = printed(caught.value)

    assert caught.value.__traceback__ is before
    assert names[-2:] == ["program", "fail_with_context"]
