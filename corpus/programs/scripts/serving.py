"""A server that waits for requests, puts them together, and answers; a client in a thread."""

import queue
import random
import threading
import time

import torch
from torch import nn

requests = queue.Queue()


class Request:
    def __init__(self, features):
        self.features = features
        self.done = threading.Event()
        self.answer = None


def client(count):
    random.seed(0)
    pending = []
    for _ in range(count):
        request = Request(torch.randn(128))
        requests.put(request)
        pending.append(request)
        time.sleep(random.uniform(0.002, 0.012))
        if len(pending) >= 8:
            pending.pop(0).done.wait()
    requests.put(None)


def serve(model, most=8):
    served = 0
    while True:
        request = requests.get()
        if request is None:
            break
        group = [request]
        with torch.inference_mode():
            answers = model(torch.stack([one.features for one in group]))
        for one, answer in zip(group, answers):
            one.answer = answer
            one.done.set()
        served += len(group)
    return served


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    ).eval()
    threading.Thread(target=client, args=(250,), daemon=True).start()
    print("served", serve(model))
