"""Tests that share nothing, all of one file: how they are given to workers."""

from collections import Counter

import pytest
from tests.together import PORTION


@pytest.mark.parametrize("_number", range(PORTION + 1))
def test_they_travel_in_portions(request: pytest.FixtureRequest, _number: int) -> None:
    own = [item for item in request.session.items if item.path == request.path]
    markers = [item.get_closest_marker("xdist_group") for item in own]
    sizes = Counter(marker.args[0] for marker in markers if marker is not None)
    full, rest = divmod(len(own), PORTION)
    file = "tests/test_portions.py"
    assert sizes == {f"{file}:{n}": PORTION for n in range(full)} | (
        {f"{file}:{full}": rest} if rest else {}
    )
