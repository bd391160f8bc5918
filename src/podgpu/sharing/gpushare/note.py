"""What gpushare's scheduler writes on a pod: the number of its card, or its units on several cards."""

from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from podgpu.model import Pod

SPREAD = "scheduler.framework.gpushare.allocation"
NUMBER = "ALIYUN_COM_GPU_MEM_IDX"
UNITS_OF_CARD = "ALIYUN_COM_GPU_MEM_DEV"

Units = Annotated[int, Meta(ge=1, lt=1 << 24)]

REMEMBERED = 512  # notes that need not be read again
MOST_CONTAINERS = 512  # no pod has as many

_decode = msgspec.json.Decoder(dict[str, dict[str, Units]]).decode


def spreads(pod: Pod) -> dict[str, dict[str, int]]:
    return _spreads(pod.annotations[SPREAD])


@lru_cache(REMEMBERED)
def _spreads(text: str) -> dict[str, dict[str, int]]:
    try:
        found = _decode(text)
    except (ValueError, RecursionError):  # what is no note, or no text, or nested without end
        return {}
    return found if len(found) <= MOST_CONTAINERS else {}


def number(pod: Pod | None, annotation: str) -> int:
    return positive(pod.annotations.get(annotation, "") if pod else "")


def positive(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
