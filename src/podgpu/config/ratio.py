"""Parses the file that says into how many virtual GPUs each card is divided, such as `2` or `2 4 4 1`."""

import re

from podgpu.errors import UserError
from podgpu.option.file import text_file

FORM = "the file must hold one number for the node, or one for each GPU, from 1 to 9999, such as 2 or 2.5"
RATIO_FILE = "gpu_allocation.txt"  # as k8s-vgpu-monitor calls it
_RATIO = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,9})?")


def ratios(path: str, text: str) -> tuple[float, ...]:
    found = tuple(
        _ratio(word, f"{path}, line {number}")
        for number, line in enumerate(text.split("\n"), 1)
        for word in line.replace(",", " ").split()
    )
    if not found:
        raise UserError(f"{path} holds no number; {FORM}")
    return found


def _ratio(word: str, place: str) -> float:
    ratio = float(word) if _RATIO.fullmatch(word) else 0.0
    if ratio < 1:
        raise UserError(f"{place}: {word[:40]!r} does not fit; {FORM}")
    return ratio


ratio_file = text_file(ratios, kibibytes=64, advice=FORM)
