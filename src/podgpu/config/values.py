"""Parses the values of core options: listeners, levels and names of series, and the file of ratios."""

import re

from podgpu.errors import UserError
from podgpu.option.file import text_file
from podgpu.option.value import NATIVE, Address, OneOf, did_you_mean
from podgpu.views.dialects import dialect_names
from podgpu.views.series import LEVELS, NAMES

RATIO_FORM = "the file must hold one number for the node, or one for each GPU, from 1 to 9999, such as 2 or 2.5"
RATIO_FILE = "gpu_allocation.txt"  # as k8s-vgpu-monitor calls it
_RATIO = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,9})?")
_OWN = "podgpu_"
_NAME = re.compile(r"[a-zA-Z_:*][a-zA-Z0-9_:*]{0,255}")
# `on` and `off` are what the option took before it had levels.
level = OneOf(LEVELS, {"on": "process", "off": "container"})


def ratios(path: str, text: str) -> tuple[float, ...]:
    """Parse into how many virtual GPUs each card is divided, such as `2` or `2 4 4 1`."""
    found = tuple(
        _ratio(word, f"{path}, line {number}")
        for number, line in enumerate(text.split("\n"), 1)
        for word in line.replace(",", " ").split()
    )
    if not found:
        raise UserError(f"{path} holds no number; {RATIO_FORM}")
    return found


def _ratio(word: str, place: str) -> float:
    ratio = float(word) if _RATIO.fullmatch(word) else 0.0
    if ratio < 1:
        raise UserError(f"{place}: {word[:40]!r} does not fit; {RATIO_FORM}")
    return ratio


ratio_file = text_file(ratios, kibibytes=64, advice=RATIO_FORM)


def family_name(text: str) -> str:
    """Parse the name of a metric, or a pattern. A dialect may have any name; podgpu's own are known."""
    if not _NAME.fullmatch(text):
        raise UserError(f"{text!r} is not the name of a metric; write it like podgpu_gpu_up or podgpu_mig_*")
    if text.startswith(_OWN) and "*" not in text and text not in NAMES:
        raise UserError(f"there is no metric {text}; {did_you_mean(text, NAMES, 'podgpu metrics lists them')}")
    return text


def listener(text: str) -> Address:
    address = Address.parse(text)
    # The names are known only once all dialects are loaded, so an address without a dialect does not load them.
    if address.dialect != NATIVE and address.dialect not in (known := [NATIVE, *dialect_names()]):
        advice = did_you_mean(address.dialect, known, f"choose one of: {', '.join(known)}")
        raise UserError(f"there is no dialect {address.dialect!r}; {advice}")
    return address
