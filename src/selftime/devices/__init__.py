"""Device types of PyTorch, descriptions of the devices in a trace, and devices' peak rates."""

from selftime.devices.descriptions import (
    DEVICE_TYPE_NAMES,
    HOST_DEVICE_TYPES,
    description_row_by_device,
    is_amd_recording,
)
from selftime.devices.peak_rates import (
    PEAK_RATES_BY_DEVICE_NAME,
    DevicePeakRates,
    peak_rates,
)

__all__ = [
    "DEVICE_TYPE_NAMES",
    "HOST_DEVICE_TYPES",
    "PEAK_RATES_BY_DEVICE_NAME",
    "DevicePeakRates",
    "description_row_by_device",
    "is_amd_recording",
    "peak_rates",
]
