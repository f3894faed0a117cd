"""When nothing is left to do, and what is left all the same."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Fix, Saving, Where
from selftime.advice.well_optimised_verdict import (
    WELL_OPTIMISED_VERDICT_NAME,
    well_optimised_verdict,
)
from selftime.testing import sketch
from selftime.trace import Trace

FOUND = Finding(
    title="It waits", where=Where(), saving=Saving(), confidence="low", fix=Fix("Do not wait.")
)


_FLOATS = 'input_types = ["float","float"]'


def cpu(one: str, side: int = 1024, facts: str = "{}") -> Trace:
    return sketch(f"""
        column = 1 ms
        mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
        cpu 1  | {one}{one}{one}
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        a = aten::mm; input_shapes = [[{side},{side}],[{side},{side}]]; {_FLOATS}
        b = aten::relu
        facts = {facts}
    """)


def device(kernels: str, name: str) -> Trace:
    return sketch(f"""
        column = 1 ms
        mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
        cpu 1  | aaaa                aaaa                aaaa
        call 1 | k                   k                   k
        gpu 7  | {kernels}{kernels}{kernels}
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        a = aten::mm
        k = {name}
    """)


TENSOR = "ampere_s16816gemm_bf16_128x128_ldg8_f2f_nn"
SCALAR = "ampere_sgemm_128x64_nn"
FULL = "kkkkkkkkkkkkkkkkkkkk"


def test_products_all_the_time_leave_nothing_to_do() -> None:
    found = well_optimised_verdict(cpu("aaaaaaaaaaaaaaabbbb "), [])
    assert isinstance(found, Checked)
    assert found.rule == WELL_OPTIMISED_VERDICT_NAME
    assert found.max_cause_ms == pytest.approx(1.0)
    assert "5" in found.reason


def test_no_praise_for_products_that_are_slow_for_their_size() -> None:
    """2 x 1024^3 operations in 15 ms are 143 GFLOP/s: fast for one thread, not for eight."""
    one = "aaaaaaaaaaaaaaabbbb "
    assert well_optimised_verdict(cpu(one, side=256), []) is None
    assert well_optimised_verdict(cpu(one, facts='{"threads": 4}'), []) is not None
    assert well_optimised_verdict(cpu(one, facts='{"threads": 8}'), []) is None


def test_no_praise_beside_a_finding() -> None:
    assert well_optimised_verdict(cpu("aaaaaaaaaaaaaaabbbb "), [FOUND]) is None


@pytest.mark.parametrize("one", ["aaaaaaaaaaaaaaa     ", "aabbbbbbbbbbbbbbbbbb", " " * 20])
def test_no_praise_where_little_is_known_to_be_good(one: str) -> None:
    assert well_optimised_verdict(cpu(one), []) is None


def test_a_device_that_is_full_of_tensor_cores_work() -> None:
    found = well_optimised_verdict(device(FULL, TENSOR), [])
    assert isinstance(found, Checked)
    assert found.max_cause_ms == pytest.approx(0.0, abs=1.0)


def test_a_device_that_waits_or_works_beside_its_units_is_not_praised() -> None:
    assert well_optimised_verdict(device("kkkkkkkkkkkkkkk     ", TENSOR), []) is None
    assert well_optimised_verdict(device(FULL, SCALAR), []) is None


def test_nothing_recorded_is_no_verdict() -> None:
    assert well_optimised_verdict(Trace(), []) is None
