"""A tenant that works in random bursts until killed, and logs each: begin, end, kernels done.

`bursts.py LOG KIND BURST PAUSE JITTER SEED EVERY`: BURST seconds of work, then PAUSE seconds of rest, each longer or
shorter by up to the share JITTER. With EVERY, a burst begins so many seconds after the one before, as a camera's frames
do. With neither it is always at work. KIND is `tensor`, `mem` or `infer`.
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

Step = Callable[[], object]


def tensor() -> Step:
    """A large product, bound by the tensor cores."""
    a, b = (torch.randn(4096, 4096, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out)


def mem() -> Step:
    """A copy, bound by memory."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def infer() -> Step:
    """A batch of a few through a small model: many kernels, each too small for the card."""
    layers = [torch.randn(2048, 2048, dtype=torch.bfloat16, device="cuda") / 45 for _ in range(24)]
    batch = torch.randn(8, 2048, dtype=torch.bfloat16, device="cuda")

    def step() -> None:
        flow = batch
        for layer in layers:
            flow = torch.relu(flow @ layer)

    return step


KINDS: dict[str, Callable[[], Step]] = {"tensor": tensor, "mem": mem, "infer": infer}


def main() -> None:
    log, kind, *numbers = sys.argv[1:]
    burst, pause, jitter, seed, every = map(float, numbers)
    chance = random.Random(seed)
    step = KINDS[kind]()
    step()
    torch.cuda.synchronize()
    due = time.time()
    with Path(log).open("a", buffering=1) as file:
        while True:
            begin, done = time.time(), 0
            end = begin + burst * chance.uniform(1 - jitter, 1 + jitter)
            while time.time() < end:
                step()
                torch.cuda.synchronize()
                done += 1
            print(begin, time.time(), done, file=file)
            if every:
                due += every * max(1, -(-(time.time() - due) // every))  # a frame that comes too late is left out
                time.sleep(max(0.0, due - time.time()))
            elif pause:
                time.sleep(pause * chance.uniform(1 - jitter, 1 + jitter))


if __name__ == "__main__":
    main()
