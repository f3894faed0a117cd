"""Options of torch's profiler that are experimental, and that not every release has."""

from typing import Any

import pytest

__all__ = ["experimental_config"]


def experimental_config(**options: Any) -> Any:
    """Torch's options; skips the test where this release lacks one."""
    from torch._C._profiler import _ExperimentalConfig  # noqa: PLC0415 - slow, and not everywhere

    from selftime.capture.profiler import profiler_options  # noqa: PLC0415 - likewise

    for name in options:
        if not profiler_options.is_config_option_supported(name):
            pytest.skip(f"this PyTorch has no option `{name}`")
    return _ExperimentalConfig(**options)
