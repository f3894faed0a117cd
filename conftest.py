"""What every test has: a cache of its own, the judge of a rule's test, and a Python with torch."""

import gc
import os
from collections.abc import Callable, Generator, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import hypothesis
import pytest
from tests.preloaded import Preloaded
from tests.sampling import sampled
from tests.together import groups, kept, named

EXAMPLES = 10
"""Drawn for each property, others in each run: drawing a trace and asking views takes 50 ms."""
FEWER = 3
"""Likewise with `--sample`."""
THOROUGH = 500
"""Likewise with `--hypothesis-profile=thorough`, as `make fuzz` has it."""
for profile, examples in (("patient", EXAMPLES), ("brief", FEWER), ("thorough", THOROUGH)):
    # Machines are shared and noisy: no deadline.
    hypothesis.settings.register_profile(profile, deadline=None, max_examples=examples)
hypothesis.settings.load_profile("patient")

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores. Two pools of threads on two cores wait for each other: a step of a
    # small network then took seconds instead of milliseconds.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # a fifth less time for small tables

Judge: TypeAlias = Callable[[str], list[Any]]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three for two cores: a fifth of the time, tests wait for a process, a browser or a clock."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) * 3 // 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: to walk all of it again and again took a third of collecting it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="Write the tables that tests compare with anew; read the difference before a commit.",
    )
    parser.addoption(
        "--sample",
        action="store_true",
        help="Leave out tests marked `sweep` or `timed`; of each marked `sweep(n)` run n cases.",
    )
    parser.addoption(
        "--screenshots",
        action="store_true",
        help="Keep pictures of what the tests in a browser see, in build/screenshots.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("sample"):
        hypothesis.settings.load_profile("brief")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("sample"):
        items[:], left = sampled(items)
        config.hook.pytest_deselected(items=left)
    for item, name in groups(items):
        item.add_marker(pytest.mark.xdist_group(name))
    for item in items:
        named(item)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's cache of traces; all workers of a run have one."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # each worker has a folder of its own in that of the run
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SELFTIME_CACHE", str(folder / "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _failed_rules_fail() -> Iterator[None]:
    """A rule that raises fails the test; users see what the other rules say."""

    def fail(_rule: object, error: Exception) -> object:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("selftime.advice.advise"), "outcome_of_failed_rule", fail)
        yield


@pytest.fixture(scope="module", autouse=True)
def _nothing_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a module remembers goes with it: real traces as `json` reads them take a gigabyte."""
    yield
    for function in kept(request.module):
        function.cache_clear()


@pytest.fixture
def rule(request: pytest.FixtureRequest) -> Any:
    """The rule of a test: `small_kernels_test.py` is about the rule `small_kernels`.

    It is found by the test's file name, so that rules and their tests import no rule, and imported
    here and not above: a fault in one is to fail its own tests only.
    """
    name = Path(request.path).stem.removesuffix("_test")
    return import_module("selftime.advice.rules").RULES[name]


@pytest.fixture
def judge(rule: Any) -> Judge:
    """What the test's rule finds in a drawing."""
    finding = import_module("selftime.advice.rule_definition").Finding
    sketch = import_module("selftime.testing").sketch

    def findings(drawing: str) -> list[Any]:
        return [outcome for outcome in rule(sketch(drawing)) if isinstance(outcome, finding)]

    return findings


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    """Runs programs that import torch without the seconds that its import takes."""
    pytest.importorskip("torch")
    started = Preloaded()
    yield started
    started.close()
