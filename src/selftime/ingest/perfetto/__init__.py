"""Converts traces in Perfetto's binary format, which PyTorch after 2.13 can write, to JSON.

messages    decoding protocol buffers
tracks      the thread or counter of each track
events      the slices, instants and counter samples of a file, as JSON
"""
