"""A matrix product that runs until killed, and says each second how many it did.

`load.py SIZE DUTY MEBIBYTES`: bf16 products of SIZE cubed, busy for a share DUTY of the time, holding MEBIBYTES.
"""

import sys
import time

import torch


def main() -> None:
    size, duty, mebibytes = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    held = torch.empty(mebibytes << 20, dtype=torch.uint8, device="cuda")
    a, b = (torch.randn(size, size, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    done, reported = 0, time.monotonic()
    while held is not None:
        began = time.monotonic()
        while time.monotonic() - began < 0.1 * duty:
            for _ in range(8):
                torch.matmul(a, b, out=out)
            torch.cuda.synchronize()
            done += 8
        time.sleep(max(0.0, 0.1 - (time.monotonic() - began)) if duty < 1 else 0)
        if time.monotonic() - reported >= 1:
            seconds = time.monotonic() - reported
            print(f"{time.monotonic()} {done / seconds}", flush=True)
            done, reported = 0, time.monotonic()


main()
