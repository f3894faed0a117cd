"""Small programs, labelled by reading PyTorch's sources, that preflight was not written for.

A trailing `# waits: KIND, …` says that the line makes the host wait on a real CUDA device, and
how. Each docstring says why, with the file and the function that prove it: ATen's sources (2.6,
and the headers of 2.13), checked against what 2.13 records of its own calls, and the installed
Python sources. What the sources leave open is not here: pageable memory with `non_blocking`,
`torch.cuda.empty_cache`, anomaly mode, operators in compiled regions.

They were written in five batches while preflight was built. Its author heard of classes of
failure between the batches, never of a program. Sites by line and by direction, 417 programs:

| | precision | recall | programs that failed |
|---|---|---|---|
| the first version, before its author heard of anything | .994 | .919 | 19 |
| each batch at first contact | .991 | .964 | 6 |
| each batch at first contact, as first labelled | .986 | .963 | 6 |

Two labels were corrected from PyTorch's sources: `nn.init.trunc_normal_` asks `mask.any()`, and
`OneHotCategorical` makes its `Categorical` with the default checks. In the last batch, of 34
programs, nothing was false or missed. Now the programs are no secret, and what `test_heldout.py`
holds is a floor, not an estimate.

No GPU has judged these labels yet.
"""
