"""Writes docs/problems.md, the reference of states and problems."""

from podgpu.insight.problems import KINDS
from podgpu.insight.tenants import EVIDENCE, IDLE, UNKNOWN, WAITING, WORKING
from podgpu.views.why_sentences import WITHOUT_CLAIM

_STATES = {
    WORKING: "it used what it holds within the time of --idle.after",
    IDLE: "it has not used what it holds for that time, or longer",
    WAITING: "it has held a GPU for a short time, and has not used it yet",
    UNKNOWN: "it cannot be known",
}
_PAGE = """\
# States and problems

<!-- Generated from src/podgpu/insight by `make docs`. Do not edit. -->

podgpu concludes once who uses what it holds, and what is wrong. The documents carry it ([snapshot.md](snapshot.md)),
and the page, `podgpu top`, `idle`, `snapshot`, `why`, `doctor` and the alerts show it in the same words.

## States

A tenant that holds a share of a card is in one of these states. `--idle.after` is the only threshold; it is 30 minutes
unless you choose another.

| state | meaning |
|---|---|
"""
_EVIDENCE = """
A state comes with the evidence for it:

| evidence | meaning |
|---|---|
"""
_WITHOUT_CLAIM = """
A container may use a card without a claim of its own. `without_claim` says why. Only `not_given` is a problem, and it
is one only if it is proven:

| reason | meaning |
|---|---|
"""
_PROBLEMS = """
## Problems

What is critical comes first, then warnings, then what is only worth knowing, and in each the kinds in this order.
Of many alike the first is shown, with how many more there are.

| kind | meaning |
|---|---|
"""


def markdown() -> str:
    states = "".join(f"| `{state}` | {means} |\n" for state, means in _STATES.items())
    evidence = "".join(f"| `{name}` | {words} |\n" for name, words in EVIDENCE.items())
    reasons = "".join(f"| `{name}` | {words} |\n" for name, words in WITHOUT_CLAIM.items())
    problems = "".join(f"| `{kind.name}` | {kind.means} |\n" for kind in KINDS)
    return f"{_PAGE}{states}{_EVIDENCE}{evidence}{_WITHOUT_CLAIM}{reasons}{_PROBLEMS}{problems}"
