"""What must hold in every snapshot, and from one to the next. Each breach is a line of text; none is good."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from podgpu.agent.books import GRACE_SECONDS

Object = dict[str, Any]
Key = tuple[str, ...]

COUNTERS = ("busy_us", "energy_mj")
# A name that was not on a card for this long may begin anew: its former totals are booked as ended.
FORGOTTEN_SECONDS = GRACE_SECONDS - 10


def unbalanced(snapshot: Object) -> Iterator[str]:
    """Σ containers + unattributed = device, to the byte, the microsecond and the millijoule."""
    for card in snapshot["cards"]:
        balance = card.get("balance")
        if balance is None:
            continue
        lines = [tenant["booking"] for tenant in (*card["tenants"], *card["ended"])] + card["rest"]
        for name in ("memory_bytes", *COUNTERS):
            if (whole := balance.get(name)) is None:
                continue
            parts = sum(line.get(name) or 0 for line in lines)
            if parts != whole:
                yield f"GPU {card['gpu']['index']}: {name} adds up to {parts}, not {whole}"


def doubled(snapshot: Object) -> Iterator[str]:
    """No card, and no tenant of a card, is listed twice."""
    cards = Counter(card["gpu"]["uuid"] for card in snapshot["cards"])
    yield from (f"{uuid} is listed {count} times" for uuid, count in cards.items() if count > 1)
    for card in snapshot["cards"]:
        tenants = Counter(
            (*_name(tenant), tenant["container"]["pod_uid"]) for tenant in (*card["tenants"], *card["ended"])
        )
        yield from (f"{name} is a tenant {count} times" for name, count in tenants.items() if count > 1)


class Owners:
    """Whose each process is, by the file in which the machine wrote it down before the driver listed it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[int, str] = {}

    def misplaced(self, snapshot: Object) -> Iterator[str]:
        """No tenant has another's process."""
        for card in snapshot["cards"]:
            for tenant in (*card["tenants"], *card["ended"]):
                uid = tenant["container"]["pod_uid"]
                for process in tenant["processes"]:
                    if not self._is(process["pid"], uid):
                        yield f"process {process['pid']} is booked to {_name(tenant)} {uid}"

    def _is(self, pid: int, uid: str) -> bool:
        if self._known.get(pid) != uid:
            lines = (line.split(" ") for line in self._path.read_text().splitlines())
            self._known = {int(number): owner for number, owner in lines}
        return self._known.get(pid) == uid


class Memory:
    """What counters said last. Whoever was on a card lately must not have less than before, even after an absence."""

    def __init__(self) -> None:
        self._values: dict[Key, float] = {}
        self._held_at: dict[Key, float] = {}

    def fallen(self, snapshot: Object) -> Iterator[str]:
        at: float = snapshot["taken_at"]
        for key, value, held in _counters(snapshot):
            before = self._values.get(key)
            if before is not None and value < before and at - self._held_at[key] < FORGOTTEN_SECONDS:
                yield f"{' '.join(key)} fell from {before} to {value}"
            self._values[key] = value
            if held or key not in self._held_at:
                self._held_at[key] = at
        if len(self._values) > 20_000:
            self._forget(at)

    def _forget(self, at: float) -> None:
        old = [key for key, held_at in self._held_at.items() if at - held_at > FORGOTTEN_SECONDS]
        for key in old:
            del self._values[key], self._held_at[key]


def _counters(snapshot: Object) -> Iterator[tuple[Key, float, bool]]:
    """Return each counter with its key, and whether whom it is about is there now."""
    for error in snapshot["errors"]:
        yield ("error", error["source"], error["reason"]), error["count"], True
    for card in snapshot["cards"]:
        uuid = card["gpu"]["uuid"]
        for name in COUNTERS:
            if balance := card.get("balance"):
                yield (uuid, name), balance[name], True
            for rest in card["rest"]:
                yield (uuid, rest["reason"], name), rest[name], True
        yield from _tenants(uuid, card)


def _tenants(uuid: str, card: Object) -> Iterator[tuple[Key, float, bool]]:
    """Pods of one name share their series, so they are added up."""
    totals: Counter[Key] = Counter()
    for tenant in (*card["tenants"], *card["ended"]):
        for name in (*COUNTERS, "allocated_us"):
            totals[uuid, *_name(tenant), name] += tenant["booking"].get(name, 0)
    here = set(map(_name, card["tenants"]))
    for key, value in totals.items():
        yield key, value, key[1:-1] in here


def _name(tenant: Object) -> Key:
    container = tenant["container"]
    return tenant["mig"], container["namespace"], container["pod"], container["container"]


class Page:
    """The counters of the page, from one scrape to the next."""

    def __init__(self) -> None:
        self._before: dict[str, float] = {}

    def wrong(self, text: str) -> Iterator[str]:
        series = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
        yield from _twice(name for name, _, _ in series)
        now = {name: float(value) for name, _, value in series if name.partition("{")[0].endswith("_total")}
        for name in now.keys() & self._before.keys():
            if now[name] < self._before[name]:
                yield f"{name} fell from {self._before[name]} to {now[name]}"
        self._before = now


def _twice(names: Iterable[str]) -> Iterator[str]:
    yield from (f"{name} is on the page {n} times" for name, n in Counter(names).items() if n > 1)
