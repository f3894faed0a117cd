"""Measures what DataLoader worker processes do; the option is off by default.

While a `WorkerRecord` is on, workers that start measure for each batch how long they waited for it,
made its samples, collated them and put the batch into the queue. A thread in each worker samples
the running line. Workers write this into a folder of the main process, which adds when the loop
took each batch.
"""
