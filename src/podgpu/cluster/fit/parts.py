"""How parts of cards are asked for, in the words of the sharing systems."""

import re
from functools import cache

from podgpu import sharing
from podgpu.model.fit import PORTION, WantedPart

_NOT_IN_A_LABEL = re.compile("[^a-zA-Z0-9_]")


def write_part(kind: str, system: str, wanted: WantedPart) -> str:
    """Return lines of YAML; nothing if it is not known how to ask for it. Only portions depend on the system."""
    for each in sharing.systems():
        if each.request and each.request.kind == kind and (kind != PORTION or each.name == system):
            return each.request.lines(wanted)
    return ""


@cache
def system_of(resource: str) -> str:
    """Return the system of a resource that kube-state-metrics names, such as `nvidia_com_gpu`; empty for no system."""
    return next((name for name, sign in _signs() if resource.startswith(sign)), "")


@cache
def _signs() -> tuple[tuple[str, str], ...]:
    """Return the systems whose parts can be asked for, with what their resources begin with."""
    return tuple(
        (each.name, _NOT_IN_A_LABEL.sub("_", sign))
        for each in sharing.systems()
        if each.request
        for sign in each.signs
    )
