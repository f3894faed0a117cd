"""Recordings and answers inside other programs' frameworks: one file for each of them.

A file imports its framework and nothing else that is optional. All of them are made of the same
part, `recording`, over the same core, `selftime.capture.recorder.watching`.
"""
