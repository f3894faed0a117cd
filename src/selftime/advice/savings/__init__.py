"""Computes how many ms per step a fix saves, from what the rule says that the fix removes.

A rule claims what its fix removes or scales, and how sure this is (`claims.py`).
`saving_from_claim.py` makes the saving of it, in one order:

1. Estimate and interval (`estimates.py`): the replay of the program with the change, which bounds
   what it says by the recorded idle time (`Replay.saving`), or the rule's own model; the interval
   is as wide as the rule is unsure.
2. Cost of recording (`estimates.py`): the saving in a step without a profiler.
3. Calibration (`calibration.py`): the interval, widened by how far promised savings were
   off.
4. Bounds (`bounds.py`): no number above what the step has beyond its floor.
5. Significance (`saving_from_claim.py`): a saving that is small, or within step-to-step variation,
   is no finding; it was checked.
6. Overlap of findings (`finding_overlap.py`): where two findings claim the same time, a broad one
   has what the others leave; all of them together are one replay.
7. Whole run (`run_savings.py`): the saving of a step, over all steps that the recorded ones stand
   for. A cause outside of steps is claimed in seconds of the run, which are its saving as they are,
   if they are a significant share of the run; of two findings of one cause the better one stays.

Of a cause that is ruled out a rule states the recorded time, and `checked_causes.py` makes the most
that could be saved of it.

Nothing outside this folder writes `estimate_ms`, `low_ms`, `high_ms`, `upper_ms` or `speedup` of a
saving, or turns recorded time into time without a profiler: `tests/test_architecture.py` reads the
sources.
"""
