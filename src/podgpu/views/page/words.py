"""The words that the page shares with the other views, as a module for it."""

import msgspec

from podgpu.insight.holding import EVIDENCE
from podgpu.numbers.table import TABLE
from podgpu.views.rest import MEANINGS, REASONS
from podgpu.views.why.words import METHODS, NOT_GIVEN


def script() -> bytes:
    """`words` for the page's modules. JSON is JavaScript, and these words are ours."""
    words = {
        "not_given": NOT_GIVEN,
        "methods": METHODS,
        "reasons": REASONS,
        "meanings": MEANINGS,
        "evidence": EVIDENCE,
        "numbers": TABLE,
    }
    return b"export const words = " + msgspec.json.encode(words) + b";\n"
