"""Which source lines the account's rows have, where a finding knows more than the recording."""

import pytest

from selftime.advice.account.account_building import account_of_step
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_outcomes import Finding, Fix, Where
from selftime.intervals import union
from selftime.testing import sketch


@pytest.mark.parametrize(
    ("where", "line", "how"),
    [
        (Where("train.py", 8, "main", "stack"), 8, "stack"),
        (Where("train.py", 8, "main", "static"), 8, "static"),
        (Where("train.py", 8, "other", "stack"), 4, "definition"),
        (Where("train.py", 4, "main", "definition"), 4, "definition"),
    ],
)
def test_a_row_in_a_function_has_the_line_of_its_finding(where: Where, line: int, how: str) -> None:
    trace = sketch("""
        column = 1 ms
        mark 1 | sssssssssstttttttttt
        cpu 1  | aaaaaaaaabaaaaaaaaab
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::mm; line = train.py:4 main definition
        b = aten::add; line = train.py:4 main definition
    """)
    claims = Finding(
        title="It waits",
        where=where,
        confidence="high",
        fix=Fix("Do not wait."),
        changes=(CutHostTime(union([0, 10_000_000], [9_000_000, 19_000_000])),),
    )
    account = account_of_step(trace, (claims,))
    assert account is not None
    claimed, other = account.rows
    assert (claimed.where.line, claimed.where.how, claimed.ms) == (line, how, 9)
    assert (other.where.line, other.where.how) == (4, "definition")
