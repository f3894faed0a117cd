"""A recording notes where the program creates its optimizers and DataLoaders."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

LIBRARY = """
    import sys, types

    library = types.ModuleType("library.loops")
    library.__file__ = "/usr/lib/python3/site-packages/library/loops.py"
    exec(compile(
        "import torch\\n"
        "def optimizer_of(net): return torch.optim.Adam(net.parameters())\\n"
        "def configured(make): return make()\\n",
        library.__file__, "exec",
    ), vars(library))
"""

PROGRAM = """
    import torch

    net = torch.nn.Linear(4, 1)

    def configure():
        return torch.optim.SGD(net.parameters(), lr=0.1)

    adam = library.optimizer_of(net)
    sgd = library.configured(configure)
    loader = torch.utils.data.DataLoader(torch.ones(400, 4), batch_size=4)
    for batch in loader:
        net(batch).sum().backward()
        sgd.step()
"""


def test_creation_sites_are_noted(record: "Runner") -> None:
    outcome = record(LIBRARY + PROGRAM)
    told = {site["class_name"]: site for site in outcome.facts["created"]}

    assert set(told) == {"Adam", "SGD", "DataLoader"}
    direct = {name: site["is_direct"] for name, site in told.items()}
    assert direct == {"Adam": False, "SGD": True, "DataLoader": True}
    assert [told[name]["function"] for name in ("Adam", "SGD")] == ["<module>", "configure"]
    assert told["Adam"]["packages"] == told["SGD"]["packages"] == ["library"]
    assert told["DataLoader"]["packages"] == []
    text = (record.folder / told["Adam"]["file"]).read_text().splitlines()
    lines = {name: text[site["line"] - 1].strip() for name, site in told.items()}
    assert lines["Adam"] == "adam = library.optimizer_of(net)"
    assert lines["SGD"] == "return torch.optim.SGD(net.parameters(), lr=0.1)"
    assert lines["DataLoader"].startswith("loader = torch.utils.data.DataLoader(")


def test_the_line_of_the_default_dtype_is_noted(record: "Runner") -> None:
    program = """
        import torch

        torch.set_default_dtype(torch.float64)
        net = torch.nn.Linear(4, 1)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(40):
            net(torch.ones(4)).sum().backward()
            sgd.step()
    """
    outcome = record(program)
    [site] = [one for one in outcome.facts["created"] if one["kind"] == "default_dtype"]

    assert (site["class_name"], site["is_direct"]) == ("float64", True)
    text = (record.folder / site["file"]).read_text().splitlines()
    assert text[site["line"] - 1].strip() == "torch.set_default_dtype(torch.float64)"
    assert outcome.facts["settings"]["default_dtype"] == "float64"
