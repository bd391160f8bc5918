"""A tenant that does the same work again and again until killed, and logs each round: begin, end, kernels done.

`rounds.py LOG KIND KERNELS PAUSE`: KERNELS are queued and waited for, then it rests for PAUSE seconds. Work that takes
longer is done later, not left out. KIND is as in `bursts.py`.
"""

import sys
import time
from pathlib import Path

import torch

from tests.gpu.bursts import KINDS


def main() -> None:
    log, kind, kernels, pause = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    step = KINDS[kind]()
    with Path(log).open("a", buffering=1) as file:
        while True:
            begin = time.time()
            for _ in range(kernels):
                step()
            torch.cuda.synchronize()
            print(begin, time.time(), kernels, file=file)
            if pause:
                time.sleep(pause)


main()
