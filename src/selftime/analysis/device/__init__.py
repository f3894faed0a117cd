"""Devices: their work, how it was launched, and how well they are used."""
