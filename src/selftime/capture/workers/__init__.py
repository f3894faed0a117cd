"""What happens inside the worker processes of DataLoaders: an opt-in record beside the trace.

While it is on, workers that start note of each batch how long they waited for it, made its samples,
joined them and put it into the queue, and a thread of theirs samples which line runs. They write
that into a folder of the main process, which adds when the loop took each batch (`WorkerRecord`).
"""
