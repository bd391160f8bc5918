"""How a device's active time and energy are divided: the weights, and the method each party's came by.

Nothing is guessed upwards: what is not accounted for stays unattributed, so that a process nobody saw never adds to
another one's bill.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from podgpu.ledger.account import Account, Interval, Party
from podgpu.ledger.reserved import PARTS, Reserved
from podgpu.ledger.usage import Usage, measured
from podgpu.model import Device, Instance


class Weights(Struct, kw_only=True):
    """Party `p` has `of[p] / whole` of what was active; whoever is not named has the rest."""

    of: dict[Party, int] = field(default_factory=dict)
    whole: int = 0
    methods: dict[Party, str] = field(default_factory=dict)

    def give(self, party: Party, weight: int, method: str) -> None:
        self.of[party] = self.of.get(party, 0) + weight
        self.methods[party] = method


def weigh(
    device: Device, usages: Mapping[Party, Usage], reserved: Reserved, interval: Interval, *, visible: bool
) -> Weights:
    """`visible` says whether processes can be seen at all; if not, the sole claimant is taken for the user."""
    if interval.is_gap:
        return Weights()
    if device.instances:
        return _by_instance(device, usages, reserved, visible=visible)
    parties = list(usages) or ([] if visible else list(reserved.shares))
    return _on_one(parties, usages, reserved, interval.busy_us)


def busy_us(device: Device, interval: Interval) -> int | None:
    """Return the time the device was busy; with MIG, the instances' times weighed by their size."""
    if not device.instances:
        return interval.busy_us
    activity = sum(_activity(device, instance) for instance in device.instances)
    return min(activity, PARTS) * interval.elapsed_us // PARTS


def _on_one(
    parties: Sequence[Party], usages: Mapping[Party, Usage], reserved: Reserved, busy: int | None
) -> Weights:
    if len(parties) == 1:
        return Weights(of={parties[0]: 1}, whole=1, methods={parties[0]: "exclusive"})
    if usages and measured(usages.values()):
        of = {party: usage.sm_us or 0 for party, usage in usages.items()}
        return Weights(of=of, whole=max(sum(of.values()), busy or 0), methods=dict.fromkeys(of, "measured"))
    return _by_reservation(parties, reserved.shares)


def _by_reservation(parties: Sequence[Party], shares: Mapping[Account, int]) -> Weights:
    """Among parties that cannot be measured. One without a claim leaves the others no more than their claims."""
    claimed: dict[Party, int] = {
        party: shares[party] for party in parties if isinstance(party, Account) and shares.get(party)
    }
    if not claimed:
        return Weights(
            of=dict.fromkeys(parties, 1), whole=len(parties), methods=dict.fromkeys(parties, "equal")
        )
    total = sum(claimed.values())
    whole = total if len(claimed) == len(parties) else max(total, PARTS)
    return Weights(of=claimed, whole=whole, methods=dict.fromkeys(claimed, "reserved"))


def _by_instance(
    device: Device, usages: Mapping[Party, Usage], reserved: Reserved, *, visible: bool
) -> Weights:
    """Activity of each instance by its share of the card; within an instance nothing can be measured."""
    weights = Weights()
    for instance in device.instances:
        uuid, activity = instance.mig.uuid, _activity(device, instance)
        weights.whole += activity
        parties: list[Party] = [party for party, usage in usages.items() if uuid in usage.migs]
        if not parties and not visible:
            parties = [account for account in reserved.shares if account.mig == uuid]
        within = _on_one(parties, {}, reserved, None)
        method = "instance" if len(parties) == 1 else "weighted"
        for party, weight in within.of.items():
            weights.give(party, activity * weight // within.whole, method)
    return weights


def _activity(device: Device, instance: Instance) -> int:
    """Parts of the whole card's time: the instance's activity by its share of the multiprocessors."""
    ratio = next(
        (one.value for one in instance.readings if one.metric == "graphics_engine_active_ratio"), None
    )
    return round((ratio or 0.0) * instance_parts(device, instance))


def instance_parts(device: Device, instance: Instance) -> int:
    """Return an instance's share of its card by multiprocessors, in parts."""
    own = instance.mig.multiprocessors or 0
    whole = device.gpu.multiprocessors or sum(one.mig.multiprocessors or 0 for one in device.instances)
    return min(PARTS, own * PARTS // whole) if whole else 0
