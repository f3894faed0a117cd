"""All that the checks look at: the place, and what the trials told."""

from dataclasses import dataclass, field

from selftime.capture.doctor.probing import Trial
from selftime.capture.doctor.system import Place


@dataclass(frozen=True, slots=True)
class Seen:
    """A trial that was not made is empty."""

    place: Place
    host: Trial = field(default_factory=Trial)
    """Stages `build` and `host`."""
    workers: Trial = field(default_factory=Trial)
    devices: Trial = field(default_factory=Trial)
    """Stages `devices` and `kernel`."""
