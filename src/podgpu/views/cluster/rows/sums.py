"""What several tenants have together."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from podgpu.model.quantity import total_of_known
from podgpu.views.cluster.places import Place
from podgpu.views.cluster.rows.row import Row
from podgpu.views.outsider import is_outsider
from podgpu.views.text import line

DIGITS = 6  # more would be noise
N = TypeVar("N", int, float)


class Sum:
    """Sums over the places. What is unknown is left out; where nothing is known, so is the sum."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = places
        self._seats = {place.seat.key: place.seat for place in places}

    def row(self, **more: Any) -> Row:
        nodes = {place.seat.node.name for place in self.places}
        models = {line(seat.card.gpu.model).removeprefix("NVIDIA ") for seat in self._seats.values()}
        return Row(
            **{
                "node": line(next(iter(nodes))) if len(nodes) == 1 else "",
                "gpus": self._numbers() if len(nodes) == 1 else (),
                "model": models.pop() if len(models) == 1 else "",
                "cards": len(self._seats),
                "pods": len({_pod(place) for place in self.places}),
                "held_gpus": _total(place.tenant.booking.allocated_ratio for place in self.places),
                "memory_used_bytes": _total(place.tenant.booking.memory_bytes for place in self.places),
                "memory_total_bytes": self._limit(),
                "power_watts": _total(place.tenant.booking.power_watts for place in self.places),
                **self._busy(),
                **more,
            }
        )

    def _numbers(self) -> tuple[str, ...]:
        """The cards' numbers, `3/1g.18gb` for a MIG instance."""
        found = {(place.seat.card.gpu.index, _profile(place)): None for place in self.places}
        return tuple(f"{index}/{profile}" if profile else str(index) for index, profile in sorted(found))

    def _busy(self) -> dict[str, Any]:
        """The bounds of several add up to bounds of the sum, which are wider than they need to be."""
        known = [(place.seat.key, use) for place in self.places if (use := place.use).ratio is not None]
        if not known:
            return {}
        cards = len({key for key, _ in known})
        busy = round(sum(use.ratio or 0.0 for _, use in known), DIGITS)
        found: dict[str, Any] = {"busy_gpus": busy, "use_ratio": round(busy / cards, DIGITS)}
        if any(use.bounds for _, use in known):
            least = sum(_known(use.least, use.ratio) for _, use in known)
            most = sum(_known(use.most, use.ratio) for _, use in known)
            found["least_busy_gpus"] = round(least, DIGITS)
            found["most_busy_gpus"] = round(min(most, float(cards)), DIGITS)
        return found

    def _limit(self) -> int | None:
        """The limits, if every place has one."""
        limits = [place.tenant.booking.memory_limit_bytes for place in self.places]
        return None if None in limits or not limits else _total(limits)


def _total(values: Iterable[N | None]) -> N | None:
    found = total_of_known(values)
    return None if found is None else round(found, DIGITS)


def _known(bound: float | None, ratio: float | None) -> float:
    return bound if bound is not None else ratio or 0.0


def _pod(place: Place) -> tuple[str, ...]:
    ref, node = place.tenant.container, place.seat.node.name
    return (node, ref.container) if is_outsider(ref) else (node, ref.namespace, ref.pod, ref.pod_uid)


def _profile(place: Place) -> str:
    mig = place.tenant.mig
    found = (one.mig.profile for one in place.seat.card.instances if one.mig.uuid == mig)
    return line(next(found, "")) if mig else ""
