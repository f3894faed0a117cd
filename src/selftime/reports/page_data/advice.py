"""Advice as the page needs it: that of `selftime advise --format json`, and a key of its own."""

from typing import Any

from selftime.advice import Advice


def advised(advice: Advice) -> dict[str, Any]:
    """`Advice` of the page's contract: `absent` numbers the causes that people see only counted."""
    absent = [at for at, checked in enumerate(advice.checked) if checked.is_absent]
    return {**advice.to_dict(), "absent": absent}
