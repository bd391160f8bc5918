"""The words that the page shares with the other views, as a module for it."""

import msgspec

from podgpu.catalog import xids
from podgpu.catalog.parts import PARTS
from podgpu.model import Prices
from podgpu.numbers.table import TABLE
from podgpu.views.advice import ACTIONS, ELSE, NEXT
from podgpu.views.glance import LEAST_SWITCHING
from podgpu.views.rest import MEANINGS, REASONS
from podgpu.views.tenant import UNSEEN_MEANS
from podgpu.views.why.words import METHODS, NOT_GIVEN

_ADVICE = {
    "recovery": "Drain the node, then do what the driver asks for.",
    "remap_failed": "Drain the node, run NVIDIA's field diagnostics, and have the card replaced.",
    "remap_pending": "Drain the node when you can, then run nvidia-smi --gpu-reset or reboot.",
    "ecc": "If the count grows, drain the node and run NVIDIA's field diagnostics.",
    "xid": "Look up the code in NVIDIA's list of XID errors, and search the kernel log for it.",
    "throttled": "Check the cooling and the power of the node.",
    "books": "A bug in podgpu. Please report it with podgpu snapshot -o json.",
    "not_given": NOT_GIVEN,
    "switching": "Let the tenants run side by side: with MPS, or with MIG. Or give each more work at a time.",
}


def script(prices: Prices | None = None) -> bytes:
    """`words` for the page's modules. JSON is JavaScript, and these words are ours."""
    words = {
        "next": {**NEXT, "": ELSE},
        "parts": {
            name: {"purpose": part.purpose, "next_steps": part.next_steps} for name, part in PARTS.items()
        },
        "actions": {str(code): text for code, text in ACTIONS.items()},
        "advice": _ADVICE,
        "xids": {str(code): meaning for code, meaning in xids.WORDS.items()},
        "methods": METHODS,
        "reasons": REASONS,
        "meanings": MEANINGS,
        "least_switching": LEAST_SWITCHING,
        "unseen": f"Unseen: {UNSEEN_MEANS}.",
        "prices": prices,
        "numbers": TABLE,
    }
    return b"export const words = " + msgspec.json.encode(words) + b";\n"
