"""Folded stacks from the view `flame`."""

from selftime.reports.export.folded_stacks import as_folded_stacks
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.flame import flame


def test_nothing_recorded_has_no_stacks() -> None:
    assert as_folded_stacks(flame(Trace())) == ""


def test_each_stack_is_a_line_with_its_own_time_in_nanoseconds() -> None:
    trace = sketch("""
        m = train.py(3): main
        a = aten::linear
        b = aten::addmm
        python 1 | mmmmmmmmmm
        cpu 1    |  aaaa  bb
        cpu 1    |   bb
    """)

    assert as_folded_stacks(flame(trace)) == (
        "train.py(3):_main 40000\n"
        "train.py(3):_main;aten::linear 20000\n"
        "train.py(3):_main;aten::linear;aten::addmm 20000\n"
        "train.py(3):_main;aten::addmm 20000\n"
    )


def test_separators_in_names_do_not_separate() -> None:
    trace = sketch("cpu 1 | aaaa\na = one;two three")

    assert as_folded_stacks(flame(trace)) == "one_two_three 40000\n"


def test_the_numbers_add_up_to_the_whole() -> None:
    trace = sketch("cpu 1 | aaaaaaaaaa bb\ncpu 1 |  bbb c ddd\ncpu 2 | aaa")
    lines = as_folded_stacks(flame(trace, min_share=0.5)).splitlines()

    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 150_000
