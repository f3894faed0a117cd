"""One sentence says what the time of a step was spent on, with lines and operators."""

from dataclasses import replace

from selftime.advice import advise
from selftime.advice.rule_outcomes import Finding, Fix, Where
from selftime.reports.advice import wording
from selftime.reports.advice.account_sentence import account_sentence
from selftime.reports.advice.account_table import ACCOUNT_TITLE, account_row_texts, verdict_text
from selftime.reports.advice.text import as_text
from selftime.reports.page_data.account import account_data
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
    "120 µs a step, bound by computing: 70.0 µs (58 %) computing at `train.py:7`, "
    "30.0 µs (25 %) waiting for data at `train.py:3`, "
    "20.0 µs (17 %) launching device work at `train.py:7`; the device works for 70.0 µs (58 %)"
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


def test_it_is_said_how_long_the_device_works_beside_the_host() -> None:
    """The longest chain runs through the launches; the collective beside them is not on it."""
    drawing = """
        mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
        cpu 1  | aaaaaaaaaaa aaaaaaaaaaa aaaaaaaaaaa
        call 1 |  k  r        k  r        k  r
        gpu 7  |   kkkk        kkkk        kkkk
        gpu 9  |     rrrrr       rrrrr       rrrrr
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        a = aten::mm; line = train.py:7 step
        r = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    """
    assert account_sentence(advise(sketch(drawing))) == (
        "120 µs a step, bound by launches of device work: 110 µs (92 %) launching device work at "
        "`train.py:7`, 10.0 µs (8 %) on the host between recorded calls; the device works for "
        "70.0 µs (58 %), 30.0 µs (25 %) of it in communication alone"
    )


def test_without_a_line_the_largest_operator_is_named() -> None:
    told = account_sentence(advise(sketch(WITHOUT_LINES)))
    assert told == (
        "100 µs a step, bound by computing: 80.0 µs (80 %) computing, most in `aten::mm`, "
        "20.0 µs (20 %) on the host between recorded calls"
    )


def test_rows_have_the_same_words_wherever_the_account_is_shown() -> None:
    """A row has a name beside its line only where that tells it from another one that is seen."""
    said = advise(sketch(STEPS), rules={})
    assert said.account is not None
    first = said.account.rows[0]
    others = tuple(
        replace(first, where=Where("train.py", 100 + line, "step", "stack")) for line in range(6)
    )
    unseen = replace(first, what="aten::add")
    account = replace(said.account, rows=(first, *others, unseen))
    said = replace(said, account=account)
    texts = account_row_texts(account)
    assert texts[0] == "computing at `train.py:7`"
    assert texts[-1] == "computing in `aten::add` at `train.py:7`"
    page = account_data(said, None)
    assert page is not None
    assert [row["text"] for row in page["rows"]] == texts
    for text in texts[:6]:
        assert text in as_text(said, width=1000)


def test_a_row_in_cells_has_its_line_or_none() -> None:
    said = advise(sketch(STEPS), rules={})
    assert said.account is not None
    row = said.account.rows[0]
    unplaced = replace(row, where=Where(), what="aten::mm")
    small = replace(unplaced, what=None, places=3, ms=row.ms / 1000, share=row.share / 1000)
    page = account_data(
        replace(said, account=replace(said.account, rows=(row, unplaced, small))), None
    )
    assert page is not None
    assert [(cells["what"], cells["name"], cells["line"]) for cells in page["rows"]] == [
        ("computing", None, "train.py:7"),
        ("computing", "in `aten::mm`", None),
        ("computing", "3 places", None),
    ]
    assert (page["rows"][0]["file"], page["rows"][0]["line_number"]) == ("train.py", 7)
    assert page["shown"] == 2  # what is told as 0 % waits until all rows are asked for


def test_rows_of_one_line_and_name_have_no_name() -> None:
    said = advise(sketch(STEPS), rules={}).account
    assert said is not None
    twice = (said.rows[0], replace(said.rows[0], verdict="small"))
    assert account_row_texts(replace(said, rows=twice)) == ["computing at `train.py:7`"] * 2


def test_computing_on_the_host_beside_a_device_is_told_apart() -> None:
    drawing = """
        mark 1 | ssssssssssttttttttttuuuuuuuuuu
        cpu 1  | bbbbbbbaa bbbbbbbaa bbbbbbbaa
        call 1 |        k         k         k
        gpu 7  |         k         k         k
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        a = aten::mm; line = train.py:7 step
        b = aten::randn; line = train.py:6 step
    """
    advice = advise(sketch(drawing))
    assert (account_sentence(advice) or "").startswith(
        "100 µs a step, bound by computing on the host: 70.0 µs (70 %) computing on the host at "
        "`train.py:6`, "
    )
    assert advice.account is not None
    assert advice.account.bound_by == ("host_compute",)
    assert advice.to_dict()["account"]["bound_by"] == ["compute"]  # as the format promises


def test_an_annotation_is_the_place_of_what_ran_between_recorded_calls() -> None:
    drawing = """
        mark 1 | ssssssssssttttttttttuuuuuuuuuu
        mark 1 | bbbbbbbbb bbbbbbbbb bbbbbbbbb
        cpu 1  | aaa     a aaa     a aaa     a
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        a = aten::mm
        b = ## backward ##
    """
    assert account_sentence(advise(sketch(drawing))) == (
        "100 µs a step, bound by what the trace does not explain: 60.0 µs (60 %) on the host "
        "between recorded calls, most in `## backward ##`, 40.0 µs (40 %) computing in `aten::mm`"
    )


def test_time_that_is_spent_only_once_is_told() -> None:
    drawing = """
        column = 1 ms
        mark 1 | ssssssssssssssssssssssssssssss
        cpu 1  | aaaaaaaaaaaaaaaaaaaaa aa aa aa
        call 1 |  kkkkkkkkkkkkkkkkkkk  k  k  k
        gpu 7  |                    x   x  x  x
        s = ProfilerStep#1
        a = aten::mm; line = train.py:7 step
        k = cudaLaunchKernel
        x = gemm; launched_by = k
    """
    told = account_sentence(advise(sketch(drawing)))
    assert told is not None
    assert "launching device work for the first time at `train.py:7`" in told


def test_a_wait_for_unrecorded_work_is_not_at_the_line_that_launched() -> None:
    drawing = """
        column = 100 us
        cpu 1  | aa
        call 1 | kl
        gpu 7  |             kkkkkkkl
        a = aten::mm; line = serve.py:7 step
    """
    advice = advise(sketch(drawing))
    assert (account_sentence(advice) or "").startswith(
        "2.00 ms a step, until the device's work ended, bound by waits for the device: "
        "1.20 ms (60 %) waiting for device work that was not recorded, "
    )
    assert advice.account is not None
    assert "queued before the recording began" in advice.account.rows[0].text


def test_a_step_that_was_recorded_in_part_is_said_to_be() -> None:
    trace = sketch("""
        mark 1 | ssssssssss
        cpu 1  | aaaaaaaa
        s = ProfilerStep#1
        a = aten::mm
        facts = {"partial": "the recording ended within a step"}
    """)
    advice = advise(trace)
    assert (account_sentence(advice) or "").startswith("100 µs a step, recorded in part, bound by")
    assert wording.typical_step_text(advice.step, with_bound=False) == "no complete step"


def test_a_file_without_a_known_line_is_named_with_what_ran() -> None:
    """But not with a function of a file, which would be named twice."""
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
        "100 µs a step, bound by Python on the host and computing: "
        "50.0 µs (50 %) computing in `aten::mm` at `program.py`, 50.0 µs (50 %) in Python at "
        "`program.py`"
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
    spent = "16.0 ms (100 %) computing in `aten::mm`"
    whole = "16.0 ms a step, the mean of 3 steps, bound by computing"
    assert account_sentence(advice) == f"{whole}: {spent}"


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
    assert told.startswith("120 µs a step, since the device's work of earlier steps ended, bound ")


def test_the_answer_has_it_with_the_recorded_step_below() -> None:
    lines = as_text(advise(sketch(STEPS)), width=400).splitlines()
    [step] = [number for number, line in enumerate(lines) if line.startswith("Step")]
    assert lines[step].removeprefix("Step").strip() == SPENT
    assert lines[step + 1].strip().startswith("as recorded: host 120 µs")
    rows = lines[lines.index("WHAT A STEP IS SPENT ON") + 1 :]
    assert " ".join(rows[0].split()) == "70.0 µs 58 % computing at `train.py:7` unexplained"


def test_the_step_without_recording_is_told_to_be_that() -> None:
    told = account_sentence(
        advise(sketch(f'{STEPS}\n    facts = {{"overhead": {{"ratio": 1.2}}}}'))
    )
    assert told is not None
    assert told.startswith("100 µs a step without recording, bound by computing: 70.0 µs (70 %)")


def test_a_collective_is_named_with_its_line() -> None:
    drawing = """
        mark 1 | ssssssssssttttttttttuuuuuuuuuu
        cpu 1  | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        a = gloo::all_reduce; line = train.py:82 train
    """
    told = account_sentence(advise(sketch(drawing.replace("a" * 30, "aaaaaaaab " * 3))))
    assert told is not None
    assert "80.0 µs (80 %) in `gloo::all_reduce` at `train.py:82`" in told


def test_an_optimizer_is_named() -> None:
    drawing = """
        mark 1 | ssssssssssttttttttttuuuuuuuuuu
        mark 1 |      ooooo     ooooo     ooooo
        cpu 1  | aaaaabbbb aaaaabbbb aaaaabbbb
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        o = Optimizer.step#Adagrad.step
        a = aten::mm
        b = aten::add_
    """
    told = account_sentence(advise(sketch(drawing)))
    assert told is not None
    assert "40.0 µs (40 %) computing in the optimizer `Adagrad`" in told


def test_a_mostly_unexplained_step_is_not_praised() -> None:
    advice = advise(sketch(STEPS), rules={})
    text = as_text(advice, width=200)
    assert wording.NO_CURE_SENTENCE in text
    assert wording.NO_FINDINGS_SENTENCE not in text
    assert "· 70.0 µs (58 %) computing at `train.py:7`: " in text
    assert advice.account is not None
    needed = replace(advice.account, unexplained_ms=0.0)
    praised = as_text(replace(advice, account=needed), width=200)
    assert wording.NO_FINDINGS_SENTENCE in praised
    assert wording.NO_CURE_SENTENCE not in praised


def test_the_rows_of_a_finding_have_its_number() -> None:
    advice = advise(sketch(STEPS))
    assert advice.account is not None
    row = replace(advice.account.rows[0], verdict="finding", finding="slow-2")
    found = (Finding(id="slow-2", title="It waits", where=Where(), confidence="high", fix=Fix("")),)
    assert verdict_text(replace(advice, findings=found), row) == "finding 1"
    assert verdict_text(advice, row) == "can be shortened"


def test_a_long_path_loses_its_first_folders() -> None:
    path = "/job/some_long_folder/some_long_project/models/adapters/text_base_model.py"
    told = account_sentence(advise(sketch(STEPS.replace("train.py:7", f"{path}:7"))))
    assert told is not None
    assert "computing at `…/models/adapters/text_base_model.py:7`" in told


def test_without_steps_there_is_none() -> None:
    assert account_sentence(advise(Trace())) is None


def test_none_of_many_lines_is_named() -> None:
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
    assert told == "100 µs a step, bound by computing: 100 µs (100 %) computing"
    same = drawing.replace("aten::add", "aten::mm").replace("aten::mul", "aten::mm")
    told = account_sentence(advise(sketch(same)))
    assert told == "100 µs a step, bound by computing: 100 µs (100 %) computing"


def test_one_rule_that_is_asked_for_is_answered_without_the_rows() -> None:
    advice = replace(advise(sketch(STEPS)), selected_rule_or_finding="slow_input")
    text = as_text(advice, width=200)
    assert "bound by computing" in text
    assert ACCOUNT_TITLE.upper() not in text


def test_a_step_that_the_device_ends_is_said_to_last_until_then() -> None:
    told = account_sentence(
        advise(sketch("cpu 1 | aa\ncall 1 | kl\ngpu 7 |  kkklllllll\na = aten::mm"))
    )
    assert told is not None
    assert told.startswith("110 µs a step, until the device's work ended, bound by computing")


def test_a_line_that_defines_a_function_is_said_to() -> None:
    drawn = WITHOUT_LINES.replace("aten::mm", "aten::mm; line = train.py:4 step definition")
    said = advise(sketch(drawn.replace("aten::add", "aten::add; line = train.py:7 step")), rules={})
    where = "in the function `step`, defined at `train.py:4`"
    assert f"computing, most {where}" in (account_sentence(said) or "")
    assert said.account is not None
    [row, *others] = account_row_texts(said.account)
    assert row == f"computing {where}"
    assert "defined" not in " ".join(others)
    page = account_data(said, None)
    assert page is not None
    assert page["rows"][0]["text"] == row
    assert where in page["spent"]
    assert where.replace("`", "") in as_text(said, width=200).replace("`", "")
