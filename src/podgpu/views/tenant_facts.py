"""A tenant's numbers in words, each with how it is known: for the pages of pods and GPUs."""

from collections.abc import Iterator

from msgspec import Struct

from podgpu.insight.tenants import IDLE, UNKNOWN, WAITING, WORKING, Placement, is_outsider
from podgpu.model import ESTIMATED, Holding, Tenant
from podgpu.numbers import age, bounds, duration, energy, memory, percent, watts
from podgpu.views import why_sentences as sentences
from podgpu.views.format import use_text

NOT_KNOWN = "not known"
STATES = {WORKING: "working", IDLE: "idle", WAITING: "waiting for its first use", UNKNOWN: "unknown"}
AT = "{at}"  # stands for the time of a fact, which a page writes in the time zone of its reader

_PERIODS = {"minute": "Of the last full minute.", "reading": "Since the previous reading."}
_LAST_HEARD = "As last heard of its node."
_STORED = "As its agent reported it to the store."
_PROCESSES = "The sum of its processes, as the driver reports them."
_POWER = "Its part of the card's power: idle power by share, the rest by busy time."
_ENERGY = "Since the agent started. All on this GPU add up to the card's own counter."
_RESIDENT = "Since the agent started, at work or not, by the driver's log of context switches."


class TenantFact(Struct, frozen=True, omit_defaults=True):
    """What it is, its value, and how that is known. Where `at` is given, `{at}` in the texts stands for that time."""

    what: str
    value: str
    how: str = ""
    at: float | None = None  # seconds since 1970


def tenant_facts(place: Placement) -> Iterator[TenantFact]:
    """List what is known of a tenant on its card, and what is not."""
    tenant, booking, is_stored = place.tenant, place.tenant.booking, place.on.is_stored
    share = booking.allocated_ratio
    is_given = tenant.holding is not None or is_stored
    given = f"{percent(share)} of the GPU" if share is not None else NOT_KNOWN if is_given else "nothing"
    yield TenantFact("Given", given, _given_by(tenant, is_stored=is_stored))
    if tenant.holding is not None:
        yield _state(tenant.holding, place.idle_seconds, is_stored=is_stored)
    yield _memory(tenant, is_stored=is_stored)
    yield from _limits(tenant)
    yield from _use(place, is_stored=is_stored)
    is_counted = booking.bookable and place.on.card.ability.counts_energy
    so_far = energy(booking.energy_mj / 1000) if is_counted else NOT_KNOWN
    yield TenantFact("Energy so far", so_far, _ENERGY)
    if tenant.held_since is not None:
        yield TenantFact("Held since", AT, "When its pod started on the node.", tenant.held_since)


def _given_by(tenant: Tenant, *, is_stored: bool) -> str:
    """How it is known what the tenant was given. A store has only the share."""
    if is_stored:
        return _STORED if tenant.holding else "The store does not have its share."
    if tenant.claims:
        claim = tenant.claims[0]
        by = claim.system or "unknown system", claim.resource or "unknown resource"
        return f"{', '.join(by)}, id {claim.device_id or 'unknown'}, reported by {claim.source or 'unknown'}"
    if is_outsider(tenant.container):
        return "Outside Kubernetes, GPUs are not allocated."
    return sentences.WITHOUT_CLAIM.get(tenant.without_claim or "", "No claim is known.")


def _state(held: Holding, seconds: float | None, *, is_stored: bool) -> TenantFact:
    how = sentences.how_held(held, is_stored=is_stored)
    text = f"Since {AT}: {how}." if held.since is not None else f"{how[:1].upper()}{how[1:]}."
    state = STATES.get(held.state, held.state)
    return TenantFact("State", state if seconds is None else f"{state} {age(seconds)}", text, held.since)


def _memory(tenant: Tenant, *, is_stored: bool) -> TenantFact:
    size = tenant.booking.memory_bytes
    seen = "None of its processes could be seen." if size is None else _PROCESSES
    how = _STORED if is_stored else seen
    return TenantFact("Memory", NOT_KNOWN if size is None else memory(size), how)


def _limits(tenant: Tenant) -> Iterator[TenantFact]:
    system = next((claim.system for claim in tenant.claims), "")
    set_by = f"Set by {system or 'its sharing system'}."
    if tenant.booking.memory_limit_bytes is not None:
        yield TenantFact("Memory limit", memory(tenant.booking.memory_limit_bytes), set_by)
    cores = [claim.core_limit_ratio for claim in tenant.claims if claim.core_limit_ratio is not None]
    if cores:
        yield TenantFact("SM limit", percent(max(cores)), set_by)


def _use(place: Placement, *, is_stored: bool) -> Iterator[TenantFact]:
    """Busy time and power of one period, and how sure they are."""
    tenant, use, card = place.tenant, place.tenant.use, place.on.card
    period = _LAST_HEARD if place.on.is_dark else _PERIODS.get(card.use.period if card.use else "", "")
    method = sentences.method_text(tenant, has_processes=bool(tenant.processes), is_stored=is_stored)
    is_known = use is not None and use.ratio is not None
    yield TenantFact("Busy", use_text(use) if is_known else NOT_KNOWN, f"{period} {method}".strip())
    if use is not None and is_known and use.certainty:
        yield TenantFact("Certainty", use.certainty, sentences.CERTAINTIES.get(use.certainty, ""))
        if use.certainty == ESTIMATED and bounds(use.least, use.most):
            between = f"between {percent(use.least)} and {percent(use.most)}"
            yield TenantFact("Proven", between, sentences.PROVEN)
    if tenant.booking.instance_ratio is not None:
        active = "Activity of the MIG instance's multiprocessors, measured."
        yield TenantFact("Of its slice", percent(tenant.booking.instance_ratio), active)
    if tenant.booking.resident_us is not None:
        yield TenantFact("On the card", duration(tenant.booking.resident_us / 1e6), _RESIDENT)
    power = use.watts if use is not None else None
    yield TenantFact("Power", NOT_KNOWN if power is None else watts(power), f"{period} {_POWER}".strip())
