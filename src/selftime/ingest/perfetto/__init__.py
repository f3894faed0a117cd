"""Read traces in Perfetto's own format, which PyTorch after 2.13 can write, as Kineto events.

messages    decoding protocol buffers
tracks      the thread or counter of each track
events      the slices, instants and counter samples of a file, as JSON
"""
