from functools import cache

import pytest


@cache
def made() -> object:
    return object()


def test_what_a_module_keeps_puts_its_tests_on_one_worker(request: pytest.FixtureRequest) -> None:
    assert made() is made()
    marker = request.node.get_closest_marker("xdist_group")
    assert marker.args == ("tests/test_together.py",)
    if getattr(request.config.option, "loadgroup", False):
        assert request.node.nodeid.endswith("@tests/test_together.py"), "the scheduler looks there"
