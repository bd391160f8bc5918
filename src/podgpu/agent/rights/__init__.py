"""Who was given what on this node."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from podgpu import sharing
from podgpu.ledger.mps import PodName
from podgpu.model import Allocation, Claim, Excused, Holder
from podgpu.sharing.ambiguity import AmbiguousClaims
from podgpu.sharing.inventory import Inventory


class Rights:
    """Found once, for as long as nothing about it changes.

    `settled` has the readings of the alternatives that processes have shown to be right. `before` are the claims that
    were found last.
    """

    def __init__(
        self,
        inventory: Inventory,
        systems: Sequence[sharing.SharingSystem],
        alternatives: tuple[AmbiguousClaims, ...],
        settled: Mapping[AmbiguousClaims, int],
        before: tuple[Claim, ...] = (),
    ) -> None:
        self.inventory = inventory
        self.alternatives = alternatives
        self.settled = settled
        self.claims = sharing.claims(inventory, systems, settled, before)
        undecided = [one for one in alternatives if one not in settled]
        self.sharing = sharing.statuses(inventory, self.claims, systems, undecided)
        self._systems = systems

    @cached_property
    def by_card(self) -> Mapping[str, list[Claim]]:
        found: dict[str, list[Claim]] = {}
        for claim in self.claims:
            found.setdefault(claim.gpu, []).append(claim)
        return found

    @cached_property
    def pods(self) -> frozenset[PodName]:
        """Those that hold anything, also those whose claims were withdrawn."""
        claimed = frozenset((claim.container.namespace, claim.container.pod) for claim in self.claims)
        return claimed | sharing.holders(self.inventory, self._systems)

    @cached_property
    def excused(self) -> Mapping[str, tuple[Excused, ...]]:
        return sharing.excused(self.inventory, self._systems)

    @cached_property
    def unclaimed(self) -> tuple[Allocation, ...]:
        """An id that nobody understands may be that of a card which does not answer."""
        devices = self.inventory.devices
        if not devices or any(device.fault for device in devices):
            return ()
        return sharing.unclaimed(self.inventory, self._systems)


def found(
    inventory: Inventory,
    systems: Sequence[sharing.SharingSystem],
    asked: tuple[AmbiguousClaims, ...],
    settled: Mapping[AmbiguousClaims, int],
    before: tuple[Claim, ...],
) -> Rights:
    """Find everything at once, for a thread to do."""
    rights = Rights(inventory, systems, asked, settled, before)
    _ = rights.unclaimed  # which takes as long
    return rights


def excused(
    rights: Rights, served: Mapping[str, Mapping[int, str]], holders: Mapping[int, Holder]
) -> dict[str, tuple[Excused, ...]]:
    """Return by card who has it for others. `served` are the PIDs of MPS servers, each with its proof."""
    found = dict(rights.excused)
    for card, proofs in served.items():
        for pid, proof in sorted(proofs.items()):
            one = Excused(role="mps-server", proof=proof, container=holders[pid].container, pid=pid)
            found[card] = (*found.get(card, ()), one)
    return found
