"""Values of the options that choose series."""

import re
from dataclasses import dataclass

from podgpu.errors import UserError
from podgpu.option.spelling import did_you_mean
from podgpu.option.value import OneOf
from podgpu.views.series_filter import NAMES

OWN = "podgpu_"
_NAME = re.compile(r"[a-zA-Z_:*][a-zA-Z0-9_:*]{0,255}")
# What the option was before it had levels.
_BEFORE = {"on": "process", "off": "container"}


@dataclass(frozen=True, slots=True)
class Level(OneOf):
    def __call__(self, text: str) -> str:
        return OneOf.__call__(self, _BEFORE.get(text, text))


def family_name(text: str) -> str:
    """Parse the name of a metric, or a pattern. A dialect may have any name; podgpu's own are known."""
    if not _NAME.fullmatch(text):
        raise UserError(f"{text!r} is not the name of a metric; write it like podgpu_gpu_up or podgpu_mig_*")
    if text.startswith(OWN) and "*" not in text and text not in NAMES:
        raise UserError(
            f"there is no metric {text}; {did_you_mean(text, NAMES, 'podgpu metrics lists them')}"
        )
    return text
