"""Device types of PyTorch, descriptions of devices in a trace, peak rates of devices and CPUs."""

from selftime.devices.cpu_peak_rates import CpuPeakRates, cpu_peak_rates_from_json
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
    "CpuPeakRates",
    "DevicePeakRates",
    "cpu_peak_rates_from_json",
    "description_row_by_device",
    "is_amd_recording",
    "peak_rates",
]
