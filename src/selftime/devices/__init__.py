"""Devices: PyTorch's device types, the description of each device, and peak rates."""

from selftime.devices.descriptions import DEVICE_TYPES, HOST_TYPES, description_rows, is_amd
from selftime.devices.peaks import PEAKS, Peaks, peaks_of

__all__ = ["DEVICE_TYPES", "HOST_TYPES", "PEAKS", "Peaks", "description_rows", "is_amd", "peaks_of"]
