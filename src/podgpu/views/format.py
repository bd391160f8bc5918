"""Short texts about cards, problems and what is booked to no container, for terminals and pages."""

from collections.abc import Iterable

from podgpu import numbers
from podgpu.model import ENDED, UNATTRIBUTED, UNKNOWN, Card, CardUse, Insight, Problem, Rest, Use
from podgpu.views.text import line, printable

REASONS = {
    "idle": "idle",
    "overhead": "overhead",
    "host": "host processes",
    "container": "other containers",
    "unknown": "unknown",
    ENDED: "ended pods",
}
MEANINGS = {
    "idle": "power of a card, or a part of it, that is allocated to no container",
    "overhead": "memory of the driver, of MPS servers and of no process",
    "host": "processes outside any container",
    "container": "containers outside Kubernetes",
    "unknown": "the owner could not be found",
    ENDED: "what pods used before they ended",
}

# The rows of a statement that stand for no group, and what they mean.
# How each total of the page is counted.
TOTALS = {
    "GPUs": "The cards of all nodes, with those that are lost or dark. Cards given to virtual machines come on top.",
    "Allocated": "The shares that were given away, divided by all GPUs. Of dark nodes, as last heard.",
    "Truly busy": "The sum of the GPUs' busy time, divided by the GPUs of which it is known: none is lost or dark.",
    "Held, not used": "The sum of the shares that nobody used for the time of --idle.after, or longer.",
    "Free": "The sum of what nobody holds, of the GPUs that a pod can get: none is lost, dark or cordoned.",
    "Power": "The sum of the power that is drawn. At most is the sum of the cards' limits.",
}
STATEMENT_ROWS = {
    "unattributed": ("(unattributed)", "booked to no container"),
    "unbooked": ("(not booked)", "used while no agent was there to book it"),
    "idle": ("(idle)", "time that was held and not used"),
    "free": ("(free)", "time in which no pod held it"),
    "unseen": ("(not seen)", "time in which no agent was there to see the GPU"),
    "total": ("total", ""),
}

AT_LEAST = "≥"
LEAST_SHOWN = 0.005  # of the card's time
_LEAST_WATTS = 0.5  # less is not worth a line
_ORDER = {reason: number for number, reason in enumerate(UNATTRIBUTED)}


def number_text(number: int) -> str:
    """Write the driver's number of a GPU or an instance; empty if it is not known."""
    return "" if number == UNKNOWN else str(number)


def use_text(use: Use | CardUse | None) -> str:
    """Write `23% (12–34)`, or `23% (~12–34)` for an estimate."""
    if isinstance(use, Use):
        return numbers.use(use.ratio, *use.range, use.certainty)
    return numbers.percent(use.ratio if use else None)


def is_visible(use: Use | None) -> bool:
    """Whether it would not be written as 0."""
    return use is not None and use.ratio is not None and use.ratio >= LEAST_SHOWN


def unpriced_texts(models: Iterable[str]) -> list[str]:
    return [f"no price for {model}; add it to the file of --price" for model in models]


def guests_text(insight: Insight | None) -> str:
    """Say how many cards are given to virtual machines; empty if none is."""
    given = insight.sums.guest_gpus if insight else None
    return f"{numbers.integer(given)} given to VMs" if given else ""


def visible_rest(card: Card) -> list[Rest]:
    """List what is on the card now and booked to no container. What was only used in the past is left out."""
    present = [
        rest
        for rest in card.rest
        if rest.memory_bytes or rest.running or (rest.power_watts or 0) >= _LEAST_WATTS or is_visible(rest.use)
    ]
    return sorted(present, key=lambda rest: _ORDER.get(rest.reason, len(_ORDER)))


def problem_text(problem: Problem, *, with_node: bool) -> str:
    """Write a problem on one line. With `with_node`, it names its node, unless its text begins with that."""
    names_node = problem.text.startswith(f"{problem.node} ")
    node = f"{line(problem.node)}: " if with_node and problem.node and not names_node else ""
    more = f" And {numbers.integer(problem.more)} more like it." if problem.more else ""
    return f"{node}{line(problem.text)}{more}"


def problem_line(problem: Problem, *, with_node: bool) -> str:
    """Write a problem, and what to do about it."""
    return f"{problem_text(problem, with_node=with_node)} {printable(problem.next_step)}".rstrip()


def held_text(held: float | None, unknown: int) -> str:
    """Write what is held, in whole cards. If there are shares of unknown size besides, that is the least it can be."""
    return f"{AT_LEAST if unknown and held else ''}{numbers.gpu_number(held or (None if unknown else held))}"
