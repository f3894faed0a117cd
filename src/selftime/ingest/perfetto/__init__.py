"""Traces in Perfetto's own format, as PyTorch after 2.13 can write them: read as Kineto's events.

messages    the fields of protocol buffers
tracks      whose thread or counter a track is
events      slices, marks and samples of a file, as JSON
"""
