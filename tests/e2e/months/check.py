"""Plays random months in real stores and compares what `podgpu report` says of them with what was true."""

import csv
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar
from unittest.mock import patch

import msgspec

from podgpu.cli.main import main as podgpu
from podgpu.cluster.report.money import digits_of
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import DecodeBudget, Point, Series
from tests.e2e import prometheus, victoria
from tests.e2e.months.maker import Maker
from tests.e2e.months.month import DAY, HOUR, Month

K = TypeVar("K")
TOGETHER = 20  # months in a store at once
STORES = ("prometheus", "victoria-metrics")
GAPS, COMPLETE = 3, 0
BASES, SHARES = ("held", "used", "energy"), ("none", "held", "even")


class RememberingStore(Store):
    """Gives the same answer to the same question without asking again: a month is billed in many ways."""

    points_of: ClassVar[dict[tuple[str, float], list[Point]]] = {}
    series_of: ClassVar[dict[tuple[str, float], list[Series]]] = {}

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        if (query, at) not in self.points_of:
            self.points_of[query, at] = await super().points(query, at, budget)
        return self.points_of[query, at]

    async def values(self, query: str, at: float, key: Callable[[bytes], K | None]) -> list[tuple[K, float]]:
        keyed = [(key(msgspec.json.encode(point.labels)), point.value) for point in await self.points(query, at)]
        return [(found, value) for found, value in keyed if found is not None]

    async def series(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Series]:
        if (query, at) not in self.series_of:
            self.series_of[query, at] = await super().series(query, at, budget)
        return self.series_of[query, at]

    @classmethod
    def forget(cls) -> None:
        cls.points_of.clear()
        cls.series_of.clear()


@dataclass
class Findings:
    """`worst` are the largest differences, in scrape intervals for each edge at which one is allowed."""

    months: int = 0
    rows: int = 0
    gpus: int = 0
    bills: int = 0
    incomplete: int = 0
    worst: dict[str, float] = field(default_factory=lambda: {"rows": 0.0, "coverage": 0.0})
    failures: list[str] = field(default_factory=list)

    def compare(self, what: str, where: str, found: float, truth: float, allowed: float) -> None:
        """`allowed` is one scrape interval at every edge."""
        difference = abs(found - truth)
        ratio = difference / allowed if allowed else float(difference > 0)
        self.worst[what] = max(self.worst[what], ratio)
        if ratio > 1:
            self.failures.append(f"{where}: {found:.6g}, truly {truth:.6g}, allowed is {allowed:.6g}")

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.failures.append(what)


class MonthCheck:
    """Bills a month of a store in every way."""

    def __init__(self, month: Month, url: str, folder: Path, findings: Findings) -> None:
        self._month = month
        self._url = url
        self._findings = findings
        self._prices = folder / f"{month.name}.json"
        self._prices.write_text(json.dumps(month.prices))
        self._units = 10 ** digits_of(month.prices["currency"])

    def run(self) -> None:
        RememberingStore.forget()
        whole = self._month.start, self._month.end
        status, bill = self._bill(whole, "held", "none")
        self._findings.months += 1
        self._check_rows(bill)
        self._check_coverage(status, bill)
        self._check_days(bill)
        for basis in BASES:
            for share in SHARES:
                self._check_sums(self._bill(whole, basis, share)[1], bill, f"{basis}/{share}")
        # Hour by hour takes long: half a day of it is enough.
        first = min(piece[0] for stay in self._month.stays for piece in self._month.known(stay))
        part = first + 600, min(first + 12 * HOUR + 700, whole[1])
        held = self._bill(part, "held", "none")[1]
        for share in SHARES:
            self._check_sums(self._bill(part, "greater", share)[1], held, f"greater/{share}")

    def _bill(self, period: tuple[float, float], basis: str, share: str) -> tuple[int, dict[str, Any]]:
        status, page = self._report(period, "-o", "json", f"--basis={basis}", f"--share={share}")
        return status, json.loads(page)

    def _report(self, period: tuple[float, float], *more: str) -> tuple[int, str]:
        times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) for at in period]
        store = [f"--prometheus.url={self._url}", f'--prometheus.selector=cluster="{self._month.name}"']
        what = [f"--from={times[0]}", f"--to={times[1]}", f"--price={self._prices}", "--by=pod", *more]
        out, errors = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            status = podgpu(["report", *store, *what])
        assert out.getvalue(), errors.getvalue()
        self._findings.bills += 1
        return status, out.getvalue()

    def _check_days(self, bill: dict[str, Any]) -> None:
        """Each day of each pod is what it held then, and its days cost what the bill says."""
        month = self._month
        _, page = self._report((month.start, month.end), "-o", "focus", "--charge-period=day")
        rows = [row for row in csv.DictReader(StringIO(page)) if row["x_Row"] == "group"]
        found: dict[tuple[str, float], float] = defaultdict(float)
        costs: dict[str, Decimal] = defaultdict(Decimal)
        for row in rows:
            at = datetime.fromisoformat(row["ChargePeriodStart"]).timestamp()
            found[row["ResourceId"], at] += float(row["x_HeldHours"] or 0) * HOUR
            costs[row["ResourceId"]] += Decimal(row["BilledCost"])
        for row in bill["rows"]:
            if row["row"] == "group":
                name = f"{row['namespace']}/{row['pod']}"
                whole = Decimal(str(row["cost"]))
                self._findings.expect(costs[name] == whole, f"{month.name} {name}: days {costs[name]}, {whole}")
        truth: dict[tuple[str, float], list[float]] = defaultdict(lambda: [0.0, 0.002])
        for tenant in month.tenants:
            for day in month.days():
                sums = truth[f"{tenant.namespace}/{tenant.pod}", day[0]]
                sums[0] += tenant.share * sum(end - begin for begin, end in month.held(tenant, day))
                edges = month.edges(tenant, day) * month.interval
                sums[1] += tenant.share * (edges + month.late(day, tenant.uuid))
        for key in truth.keys() | found.keys():
            where = f"{month.name} {key[0]} on {time.strftime('%F', time.gmtime(key[1]))}"
            self._findings.compare("rows", where, found[key], *truth[key])

    def _check_rows(self, bill: dict[str, Any]) -> None:
        month, period = self._month, (self._month.start, self._month.end)
        truth: dict[tuple[str, str], defaultdict[str, float]] = {}
        for tenant in month.tenants:
            stretches = month.held(tenant, period)
            sums = truth.setdefault((tenant.namespace, tenant.pod), defaultdict(float))
            seconds = sum(end - begin for begin, end in stretches)
            edges = month.edges(tenant, period) * month.interval
            watts = 80 * tenant.share + 400 * tenant.busy
            model = next(stay.model for stay in month.stays if stay.uuid == tenant.uuid)
            for name, rate in (
                ("gpu_seconds", tenant.share),
                ("busy_seconds", tenant.busy),
                ("energy_joules", watts),
            ):
                sums[name] += rate * seconds
                sums[f"{name} edges"] += rate * edges
            sums["cost"] += tenant.share * month.cost(stretches, model)
            sums["cost edges"] += tenant.share * edges * 3.51 / HOUR + 1 / self._units
            if change := month.price_change:
                # What the store learnt late, or at a wrong time, may have the other price.
                more = abs(month.price(model, change) - month.price(model, change - 1))
                changed = month.interval + month.late([change], tenant.uuid)
                sums["cost edges"] += tenant.share * changed * more / HOUR
        found = {(row["namespace"], row["pod"]): row for row in bill["rows"] if row["row"] == "group"}
        for key in truth.keys() | found.keys():
            self._findings.rows += 1
            sums, row = truth.get(key, defaultdict(float)), found.get(key, {})
            for name in ("gpu_seconds", "busy_seconds", "energy_joules", "cost"):
                where = f"{month.name} {'/'.join(key)} {name}"
                allowed = sums[f"{name} edges"] + 0.002
                self._findings.compare("rows", where, row.get(name, 0.0), sums[name], allowed)

    def _check_coverage(self, status: int, bill: dict[str, Any]) -> None:
        month = self._month
        truth = month.coverage()
        found = {(gpu["node"], gpu["uuid"]): gpu for gpu in bill["coverage"]["gpus"]}
        self._findings.expect(truth.keys() == found.keys(), f"{month.name}: GPUs {truth.keys() ^ found.keys()}")
        for key in truth.keys() & found.keys():
            self._findings.gpus += 1
            for name in ("seen", "unseen", "absent"):
                where = f"{month.name} {key[1]} on {key[0]} {name}"
                allowed = truth[key].edges * month.interval + month.misdated(*key)
                self._findings.compare(
                    "coverage", where, found[key][f"{name}_seconds"], getattr(truth[key], name), allowed
                )
        is_complete = not any(each.unseen for each in truth.values())
        self._findings.incomplete += not is_complete
        self._findings.expect(bill["complete"] == is_complete, f"{month.name}: complete is {bill['complete']}")
        self._findings.expect(status == (COMPLETE if is_complete else GAPS), f"{month.name}: exit status {status}")

    def _check_sums(self, bill: dict[str, Any], held: dict[str, Any], way: str) -> None:
        """Rows add up to the total. GPUs cost the same whoever pays for them, and whatever is paid for."""
        where = f"{self._month.name} {way}"
        for name, unit in (
            ("cost", self._units),
            ("gpu_seconds", 1e6),
            ("busy_seconds", 1e6),
            ("energy_joules", 1e3),
        ):
            rows = sum(round(row.get(name, 0) * unit) for row in bill["rows"])
            total = round(bill["total"][name] * unit)
            self._findings.expect(rows == total, f"{where}: {name} rows {rows}, total {total}")
        if not way.startswith("energy"):
            same = bill["total"]["cost"] == held["total"]["cost"]
            self._findings.expect(same, f"{where}: {bill['total']['cost']}, held {held['total']['cost']}")
        if way.startswith("used"):
            self._check_ranges(bill, where)
        if not way.endswith("none") and any(row["row"] == "group" for row in bill["rows"]):
            left = [row["row"] for row in bill["rows"] if row["row"] != "group" and row.get("cost")]
            self._findings.expect(set(left) <= {"unseen"}, f"{where}: not shared: {left}")

    def _check_ranges(self, bill: dict[str, Any], where: str) -> None:
        """What is booked lies within what is likely, and that within what is proven: at most all that was busy."""
        for row in bill["rows"]:
            if row.get("busy_hours"):
                names = ("least", "likely_least", "", "likely_most", "most")
                found = [row[f"busy_hours_{name}".rstrip("_")] for name in names]
                found.append(bill["total"]["busy_hours"])
                self._findings.expect(found == sorted(found), f"{where} {row['row']} {row.get('pod')}: {found}")


@contextmanager
def stored(name: str, months: Sequence[Month], folder: Path) -> Iterator[str]:
    """Yield the address of a store that has these months."""
    if name == "victoria-metrics":
        with victoria.victoria(folder) as url:
            for month in months:
                victoria.keep(url, "\n".join([*month.lines(), ""]))
            yield url
    else:
        folder.mkdir(exist_ok=True)
        prometheus.keep((line for month in months for line in month.lines()), folder)
        configuration = folder / "prometheus.yml"
        configuration.write_text("{}")
        with prometheus.started(configuration, folder) as here:
            yield here.url


def check(name: str, months: Sequence[Month], folder: Path, findings: Findings) -> None:
    with patch("podgpu.cli._store.Store", RememberingStore), stored(name, months, folder) as url:
        for month in months:
            MonthCheck(month, url, folder, findings).run()


def main(arguments: Sequence[str]) -> int:
    """Arguments: how many months, and the seed of the first."""
    number = int(arguments[0]) if arguments else 200
    first = int(arguments[1]) if len(arguments) > 1 else 0
    now = time.time() // DAY * DAY
    everything = {name: Findings() for name in STORES}
    for begin in range(first, first + number, TOGETHER):
        months = [Maker(seed, now).made() for seed in range(begin, min(begin + TOGETHER, first + number))]
        for name, findings in everything.items():
            with TemporaryDirectory() as folder:
                before = len(findings.failures)
                check(name, months, Path(folder), findings)
                for failure in findings.failures[before:]:
                    print(f"{name}: {failure}", file=sys.stderr, flush=True)
    row = "{:<18}{:>8}{:>8}{:>8}{:>12}{:>8}{:>14}{:>18}{:>10}"
    print(
        row.format(
            "store",
            "months",
            "bills",
            "rows",
            "incomplete",
            "GPUs",
            "worst row",
            "worst coverage",
            "failures",
        )
    )
    for name, found in everything.items():
        worst = (f"{found.worst[what]:.3f}" for what in ("rows", "coverage"))
        counts = (found.months, found.bills, found.rows, found.incomplete, found.gpus)
        print(row.format(name, *counts, *worst, len(found.failures)))
    print("The worst differences are in scrape intervals, for each edge.")
    return 1 if any(found.failures for found in everything.values()) else 0
