"""Records the steps of programs that use Lightning, Accelerate, pytest or other frameworks.

A file imports its framework and no other optional package. All use `recording`, which is based on
`selftime.capture.recorder.step_watch`.
"""
