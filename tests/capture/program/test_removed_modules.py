"""Tests that a program which has removed all modules can still be recorded to its end."""

import subprocess
import sys

import pytest

CLEARED = """
import json, sys
from selftime.capture.program.removed_modules import restore_removed_modules
kept, modules = json, sys.modules
modules.clear()
restore_removed_modules()
assert modules["json"] is kept and modules["sys"] is sys
import decimal
print(decimal.Decimal(1))
"""
SOME = """
import json, sys
from selftime.capture.program.removed_modules import restore_removed_modules
del sys.modules["json"]
restore_removed_modules()
print("json" in sys.modules)
"""


@pytest.mark.parametrize(("code", "printed"), [(CLEARED, "1"), (SOME, "False")])
def test_modules_are_put_back_only_if_nothing_can_be_imported(code: str, printed: str) -> None:
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert ended.stdout.strip() == printed
