"""One sentence says what the time of a step was spent on, with lines and operators."""

from selftime.advice import advise
from selftime.reports.advice.account_sentence import account_sentence
from selftime.reports.advice.text import as_text
from selftime.testing import sketch
from selftime.trace import Trace

STEPS = """
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | ddd         ddd         ddd
    cpu 1  |    aaa         aaa         aaa
    call 1 |     kxyyyyyy    kxyyyyyy    kxyyyyyy
    gpu 7  |      kkkkkkk     kkkkkkk     kkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:3 main
    a = aten::mm; line = train.py:7 step
    y = cudaStreamSynchronize
"""
SPENT = (
    "58 % (0.07 ms) computing at `train.py:7`, 25 % (0.03 ms) waiting for data at `train.py:3`, "
    "17 % (0.02 ms) launching device work at `train.py:7`"
)
WITHOUT_LINES = """
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaabbb  aaaaabbb  aaaaabbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::add
"""


def test_classes_are_named_with_their_lines() -> None:
    assert account_sentence(advise(sketch(STEPS))) == SPENT


def test_without_a_line_the_largest_operator_is_named() -> None:
    told = account_sentence(advise(sketch(WITHOUT_LINES)))
    assert told == (
        "80 % (0.08 ms) computing, most in `aten::mm`, "
        "20 % (0.02 ms) that the trace does not explain"
    )


def test_a_file_without_a_known_line_is_named_alone() -> None:
    drawing = """
        mark 1 | ssssssssssttttttttttuuuuuuuuuu
        python 1 | mmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
        cpu 1  | aaaaa     aaaaa     aaaaa
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        m = /job/program.py(1): <module>
        a = aten::mm
    """
    told = account_sentence(advise(sketch(drawing)), "/job")
    assert told == (
        "50 % (0.05 ms) computing at `program.py`, 50 % (0.05 ms) in Python at `program.py`"
    )


def test_a_mean_beside_a_median_is_told() -> None:
    steps = "r" * 10 + "s" * 10 + "t" * 14 + "u" * 24
    drawing = f"""
        column = 1 ms
        mark 1 | {steps}
        cpu 1  | {"a" * len(steps)}
        r = ProfilerStep#1
        s = ProfilerStep#2
        t = ProfilerStep#3
        u = ProfilerStep#4
        a = aten::mm
    """
    advice = advise(sketch(drawing))
    assert (advice.step.count, advice.step.host_ms) == (3, 14)
    spent = "100 % (16.0 ms) computing in `aten::mm`"
    assert account_sentence(advice) == f"of 16.0 ms, the mean of 3 steps: {spent}"


def test_a_step_that_begins_while_the_device_works_for_an_earlier_one_is_told() -> None:
    drawing = """
        mark 1 |     ssssssssssssssssssss
        cpu 1  | b   aaaa
        call 1 | j    k
        gpu 7  |  jjjjjjjjjjjkkkkkkkkkkkk
        s = ProfilerStep#1
        a = aten::mm
        b = aten::mm
    """
    told = account_sentence(advise(sketch(drawing)))
    assert told is not None
    assert told.startswith("of 0.12 ms, since the device's work of earlier steps ended: ")


def test_the_answer_has_it_below_the_step() -> None:
    lines = as_text(advise(sketch(STEPS)), width=400).splitlines()
    [step] = [number for number, line in enumerate(lines) if line.startswith("Step")]
    assert lines[step + 1].strip() == SPENT


def test_without_steps_there_is_none() -> None:
    assert account_sentence(advise(Trace())) is None


def test_the_largest_of_many_lines_is_named_with_its_share() -> None:
    drawing = """
        mark 1 | ssssssssssttttttttttuuuuuuuuuu
        cpu 1  | aaabbccdeeaaabbccdeeaaabbccdee
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        a = aten::mm; line = net.py:1 forward
        b = aten::add; line = net.py:2 forward
        c = aten::mul; line = net.py:3 forward
        d = aten::exp; line = net.py:4 forward
        e = aten::sub; line = net.py:5 forward
    """
    told = account_sentence(advise(sketch(drawing)))
    assert told == "100 % (0.10 ms) computing, 30 % of it at `net.py:1`"
    same = drawing.replace("aten::add", "aten::mm").replace("aten::mul", "aten::mm")
    told = account_sentence(advise(sketch(same)))
    assert told == "100 % (0.10 ms) computing, most in `aten::mm`"
