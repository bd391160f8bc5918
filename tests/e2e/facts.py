"""The facts of a JSON snapshot as rows to compare with a query. Only facts that do not change over time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20

Rows = set[tuple[object, ...]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A card, or a MIG instance of one."""

    uuid: str
    card: str
    index: int
    model: str
    instance: str
    memory_total: float


@dataclass(frozen=True, kw_only=True)
class Given:
    """A part that a container was given."""

    part: Part
    namespace: str
    pod: str
    container: str
    system: str
    share: float
    limit: float | None

    @property
    def who(self) -> tuple[str, str, str]:
        return self.namespace, self.pod, self.container


class Facts:
    def __init__(self, snapshot: Any) -> None:
        self.node: str = snapshot["node"]
        self.parts = [part for card in snapshot["cards"] for part in _parts(card)]
        self._tenants = [tenant for card in snapshot["cards"] for tenant in card["tenants"]]
        self.given = [self._given(claim) for tenant in self._tenants for claim in tenant["claims"]]
        self._cards = snapshot["cards"]

    @property
    def cards(self) -> list[Part]:
        return [part for part in self.parts if not part.instance]

    @property
    def undivided(self) -> list[Part]:
        """Instances, and cards without."""
        divided = {part.card for part in self.parts if part.instance}
        return [part for part in self.parts if part.instance or part.uuid not in divided]

    def sole_holder(self, part: Part) -> tuple[str, str, str]:
        held = [given for given in self.given if given.part == part]
        return held[0].who if len(held) == 1 else ("", "", "")

    def memory_used(self, pod: str) -> float:
        used = [tenant["booking"] for tenant in self._tenants if tenant["container"]["pod"] == pod]
        return float(sum(booking["memory_bytes"] for booking in used))

    def allocated(self) -> Rows:
        """Each container and how many ten-thousandths of a card it was given."""
        found = ((tenant["container"], tenant["booking"]["allocated_ratio"]) for tenant in self._tenants)
        return {(who["namespace"], who["pod"], who["container"], round(ratio * 10_000)) for who, ratio in found}

    def processes(self) -> Rows:
        """Each process, its card, and its pod where it has one."""
        return {
            (str(process["pid"]), card["gpu"]["uuid"], process["holder"].get("container", {}).get("pod"))
            for card in self._cards
            for party in (*card["tenants"], *card["rest"])
            for process in party["processes"]
        }

    def _given(self, claim: Any) -> Given:
        uuid = claim["mig"] or claim["gpu"]
        who = claim["container"]
        return Given(
            part=next(part for part in self.parts if part.uuid == uuid),
            namespace=who["namespace"],
            pod=who["pod"],
            container=who["container"],
            system=claim["system"],
            share=claim["share"],
            limit=claim.get("memory_limit_bytes"),
        )


def _parts(card: Any) -> Iterator[Part]:
    gpu = card["gpu"]
    for device in (card, *card["instances"]):
        mig = device.get("mig", {})
        yield Part(
            uuid=mig.get("uuid", gpu["uuid"]),
            card=gpu["uuid"],
            index=gpu["index"],
            model=gpu["model"],
            instance=str(mig.get("gpu_instance_id", "")),
            memory_total=next(each["value"] for each in device["readings"] if each["metric"] == "memory_total_bytes"),
        )
