"""Where steps are of several kinds, every surface says what each kind is spent on."""

import jsonschema
from tests.analysis.steps.test_kinds_of_steps import TRAINING

from selftime.advice import advise
from selftime.reports.advice.account_sentence import kind_sentences
from selftime.reports.advice.account_table import KINDS_TITLE
from selftime.reports.advice.brief import as_brief
from selftime.reports.advice.queries import ShellQueries
from selftime.reports.advice.text import as_text
from selftime.reports.page_data.account import account_data
from selftime.reports.schemas import schema
from selftime.testing import sketch

TOLD = (
    "training (3 steps): 6.00 ms a step, bound by computing: 6.00 ms (100 %) computing, most at "
    "`train.py:7`\n"
    "forward only (2 steps): 3.00 ms a step, bound by computing: 3.00 ms (100 %) computing at "
    "`train.py:7`"
)
SENTENCES = TOLD.split("\n")
ALIKE = "column = 1 ms\nmark 1 | ssstttuuu\ncpu 1 | fffffffff\n" + "\n".join(
    f"{letter} = ProfilerStep#{n}" for n, letter in enumerate("stu")
)


def test_each_kind_is_a_sentence() -> None:
    said = advise(sketch(TRAINING), rules={})
    assert said.account is not None
    assert kind_sentences(said.account) == SENTENCES
    assert KINDS_TITLE in as_text(said, width=400)
    assert all(sentence in as_text(said, width=400) for sentence in SENTENCES)
    brief = as_brief(said, ShellQueries("trace.json", said.trace))
    assert all(sentence in brief for sentence in SENTENCES)


def test_steps_that_are_alike_are_one_account() -> None:
    said = advise(sketch(ALIKE), rules={})
    assert said.account is not None
    assert said.account.kinds == ()
    assert KINDS_TITLE not in as_text(said, width=400)


def test_json_and_page_have_the_kinds() -> None:
    said = advise(sketch(TRAINING), rules={})
    told = said.to_dict()
    jsonschema.validate(told, schema("advice"))
    assert [kind["name"] for kind in told["account"]["kinds"]] == ["training", "forward only"]
    shown = account_data(said, None)
    assert shown is not None
    assert [(kind["count"], kind["time"]) for kind in shown["kinds"]] == [
        ("3 steps", "6.00 ms"),
        ("2 steps", "3.00 ms"),
    ]
