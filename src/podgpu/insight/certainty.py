"""How sure busy time is: that of a tenant, that of a group of tenants, and what would make it surer."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from podgpu.catalog.agent_parts import SWITCHES
from podgpu.model import BOUNDED, ESTIMATED, EXACT, Band, Card, Snapshot, Tenant, Use

# What a number since the previous reading is worth, by how it was found.
OF_METHODS = {"exclusive": EXACT, "instance": EXACT, "resident": BOUNDED}
BY_SAMPLES = "measured"


DIVIDED = (
    "Tenants share this GPU, and the driver's samples divide its busy time. Ranges are likely, not proven: a tenant "
    "that keeps time with the samples, as a camera does, may have had anything from none of it to all."
)
NARROWED = "--switches=check would read the driver's log of context switches at random moments, and narrow them."
NEEDS = "It needs CAP_SYS_ADMIN, the node's process ids and a driver that podgpu knows: docs/switches.md."
NOT_READ = "The log of context switches, which would narrow them, cannot be read: `podgpu doctor` says why."


class UseSpan(Struct, frozen=True, gc=False):
    """A busy share and its ranges, with none of them unknown."""

    ratio: float
    least: float
    most: float
    likely_least: float
    likely_most: float


def use_of(band: Band, watts: float | None) -> Use:
    """What a period says of a tenant."""
    ratio = band.ratio(band.booked_us)
    if not band.is_wide:
        return Use(ratio, watts=watts, certainty=EXACT)
    if not band.certainty:  # an agent before 0.2 called its likely range bounds
        return Use(ratio, 0.0, 1.0, watts, band.ratio(band.least_us), band.ratio(band.most_us), ESTIMATED)
    is_estimate = band.certainty == ESTIMATED
    return Use(
        ratio,
        band.ratio(band.least_us),
        band.ratio(band.most_us),
        watts,
        band.ratio(band.likely_least_us) if is_estimate else None,
        band.ratio(band.likely_most_us) if is_estimate else None,
        band.certainty,
    )


def of_method(method: str, *, is_idle: bool) -> str:
    """How sure the busy time of a single reading is. One without a process certainly did nothing."""
    return EXACT if is_idle else OF_METHODS.get(method, ESTIMATED)


def of_group(card: Card, members: Sequence[Tenant]) -> Use:
    """What tenants of one card had together, with the ranges of their sum.

    They had at most the card's busy time less what all others had at least, and at least that less what others can have
    had at most. So a group that is alone on a card has no doubt, however its members divide it.
    """
    uses = [tenant.use for tenant in members if tenant.use is not None and tenant.use.ratio is not None]
    whole = card.use.ratio if card.use else None
    if not uses:
        return Use()
    ratio = sum(use.ratio or 0.0 for use in uses)
    certainty = _weakest(use.certainty for use in uses)
    if all(use.least is None for use in uses):
        return Use(ratio, certainty=certainty)
    if whole is None:
        return added(uses)
    own = [span(use, whole) for use in uses]
    named = {id(tenant) for tenant in members}
    others = [span(tenant.use, whole) for tenant in card.tenants if id(tenant) not in named]
    others += [span(rest.use, whole) for rest in card.rest if rest.use is not None and rest.use.ratio is not None]
    if card.ended:  # what one that has ended had of the minute is not known any more
        others.append(UseSpan(0.0, 0.0, whole, 0.0, whole))
    least, most = _of_sum(whole, ratio, [(each.least, each.most) for each in own], [(o.least, o.most) for o in others])
    likely = _of_sum(
        whole,
        ratio,
        [(each.likely_least, each.likely_most) for each in own],
        [(other.likely_least, other.likely_most) for other in others],
    )
    if least >= most:
        return Use(ratio, certainty=EXACT)
    if certainty != ESTIMATED:
        return Use(ratio, least, most, certainty=BOUNDED)
    return Use(ratio, least, most, None, max(likely[0], least), min(likely[1], most), ESTIMATED)


def span(use: Use | None, whole: float) -> UseSpan:
    """Return a use with its ranges; what is not known may be anything."""
    if use is None or use.ratio is None:
        return UseSpan(0.0, 0.0, whole, 0.0, whole)
    least = use.ratio if use.least is None else use.least
    most = use.ratio if use.most is None else use.most
    likely_least = least if use.likely_least is None else use.likely_least
    return UseSpan(use.ratio, least, most, likely_least, most if use.likely_most is None else use.likely_most)


def added(uses: Iterable[Use]) -> Use:
    """Add up uses of different cards: their ranges add up too."""
    known = [use for use in uses if use.ratio is not None]
    if not known:
        return Use()
    spans = [span(use, 0.0) for use in known]
    ratio, least, most, likely_least, likely_most = (
        sum(getattr(each, name) for each in spans) for name in UseSpan.__struct_fields__
    )
    certainty = _weakest(use.certainty for use in known)
    if least >= most:
        return Use(ratio, certainty=certainty)
    if certainty != ESTIMATED:
        return Use(ratio, least, most, certainty=certainty)
    return Use(ratio, least, most, None, likely_least, likely_most, certainty)


def note(card: Card, snapshot: Snapshot) -> str:
    """Say that samples alone divide a card, and what would help; empty if they do not.

    Where the log is read, a card that has just become shared is still divided by samples.
    """
    users = [tenant for tenant in card.tenants if tenant.running] + [rest for rest in card.rest if rest.running]
    if len(users) < 2 or all(tenant.booking.method != BY_SAMPLES for tenant in card.tenants):
        return ""
    if any(part.name == SWITCHES.name for part in snapshot.parts):
        is_down = any(part.name == SWITCHES.name and not part.up for part in snapshot.parts)
        return f"{DIVIDED} {NOT_READ}" if is_down else DIVIDED
    return f"{DIVIDED} {NARROWED}" if snapshot.log_is_off else f"{DIVIDED} {NARROWED} {NEEDS}"


def _of_sum(
    whole: float, ratio: float, own: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    least = max(sum(low for low, _ in own), whole - sum(high for _, high in others))
    most = min(sum(high for _, high in own), whole - sum(low for low, _ in others))
    return min(least, ratio), max(most, ratio)


def _weakest(certainties: Iterable[str]) -> str:
    found = set(certainties)
    return next((each for each in (ESTIMATED, BOUNDED) if each in found), EXACT)
