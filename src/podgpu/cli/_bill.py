"""Makes the statement that a user asks for, says what is wrong with it, and makes an older one again."""

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podgpu.cli._target.progress import show_progress
from podgpu.cli._times import moment, period
from podgpu.cluster.report.charges import Basis
from podgpu.cluster.report.grouping import Grouping
from podgpu.cluster.report.statement import DAY, HOUR, StatementTerms, statement
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import EMPTY, NOTHING, StoreFault
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Prices, Statement
from podgpu.model.statement import MICROSECONDS_PER_HOUR
from podgpu.numbers import bare, count, percent
from podgpu.option.value import did_you_mean

FOCUS = "focus"
_DOCS = "docs/report.md says what to do"
_ADVICE = {
    "store_partial": "sums of half of the data would be wrong: ask again when the store is whole, or give --partial"
}
_CHARGE_SECONDS = {"hour": HOUR, "day": DAY}
_INFO = "podgpu_pod_info"
_LABEL = "label_"


class BillRequest(Struct, frozen=True, kw_only=True):
    """Everything that decides what a bill says, besides the store."""

    start: float
    end: float
    by: str
    namespace: str | None = None
    basis: Basis = Basis.HELD
    share: str = "none"
    prices: Prices | None = None


def request(arguments: Namespace, prices: Prices | None, now: float) -> BillRequest:
    start, end = period(arguments.start, arguments.end, now)
    return BillRequest(
        start=start,
        end=end,
        by=arguments.by,
        namespace=arguments.namespace,
        basis=Basis(arguments.basis),
        share=arguments.share,
        prices=prices,
    )


def made(config: Config, asked: BillRequest, arguments: Namespace, now: float) -> Statement:
    """Raises UserError where there is nothing to bill, or where the question makes no sense."""
    if asked.basis is Basis.ENERGY and asked.prices is not None and asked.prices.kwh is None:
        raise UserError("--basis=energy needs a price of energy; add kwh to the file of --price")
    found = asyncio.run(_read(config, asked, arguments, now))
    late = moment(arguments.end, now)
    if not arguments.verify and late > now:
        until = (
            f"--to={arguments.end} is in the future: the period is not over, and this is what there is so far"
        )
        found = replace(found, notices=(*found.notices, until))
    return found


async def _read(config: Config, asked: BillRequest, arguments: Namespace, now: float) -> Statement:
    store = Store(config.of(StoreOptions), whole=not arguments.partial)
    charge = _CHARGE_SECONDS[arguments.charge_period] if arguments.output == FOCUS else None
    terms = StatementTerms(asked.basis, asked.share, asked.prices, charge)
    between = (asked.start, asked.end)
    try:
        grouping = Grouping(asked.by, asked.namespace)
        found = await statement(store, between, grouping, terms, now, _show_progress)
        if not found.coverage.seen_us:
            raise UserError(f"{EMPTY}: {_nothing_seen(found)}")
        await _check_label(store, grouping, found)
        demo = store.select("podgpu_build_info", 'demo="true"')
        within = f"[{round((asked.end - asked.start) * 1000)}ms]"
        is_demo = await store.points(f"last_over_time({demo}{within})", asked.end)
    except StoreFault as fault:
        raise UserError(f"{fault.reason}: {fault.detail}; {_ADVICE.get(fault.reason, _DOCS)}") from None
    finally:
        await store.close()
    notices = tuple(f"{notice.reason}: {notice.detail}" for notice in sorted(store.notices))
    return replace(found, demo=bool(is_demo), notices=notices)


def _nothing_seen(found: Statement) -> str:
    if found.gpus:
        return (
            f"none of the {found.gpus} GPUs that are known from before, from after or from Kubernetes was "
            "scraped in this time; choose another time"
        )
    return f"{NOTHING}, or choose another time"


async def _check_label(store: Store, grouping: Grouping, found: Statement) -> None:
    """A label that no pod has is most likely misspelt, or agents do not show it."""
    groups = [line.group for line in found.lines if line.kind == "group"]
    if grouping.is_known or not groups or any(value for group in groups for value in group.values()):
        return
    pods = await store.points(f"last_over_time({store.select(_INFO)}[1h])", found.end)
    known = sorted(
        {name.removeprefix(_LABEL) for pod in pods for name in pod.labels if name.startswith(_LABEL)}
    )
    labels = f"the agents show {', '.join(known)}" if known else "the agents show no labels of pods"
    advice = did_you_mean(grouping.by, known, "show it with --kube.pod-labels")
    raise UserError(f"--by={grouping.by}: no pod has such a label in this time; {labels}; {advice}")


def _show_progress(part: float) -> None:
    show_progress(f"reading the store: {percent(part)}" if part < 1 else "")


def problems(found: Statement) -> list[str]:
    """Say what a bill lacks, a sentence each."""
    listed = [
        *found.notices,
        *(f"no price for {model}; add it to the file of --price" for model in found.unpriced),
    ]
    if found.demo:
        listed.append(
            "DEMO: some of these numbers are made up, by an agent that runs the demo or a recording"
        )
    unseen = [gpu for gpu in found.by_gpu if gpu.coverage.unseen_us]
    if unseen:
        names = sorted({gpu.node for gpu in unseen})
        where = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        time = bare("gpu hours", found.coverage.unseen_us / MICROSECONDS_PER_HOUR)
        listed.append(
            f"the bill is incomplete: {time} GPU-hours of {count(len(unseen), 'GPU')} were not seen, on {where}; "
            "see why the agents were not scraped, or give --allow-gaps"
        )
    return listed


def embedded(asked: BillRequest) -> dict[str, Any]:
    """What a JSON report carries so that it can be made again."""
    found: dict[str, Any] = msgspec.to_builtins(asked)
    return found


def again(path: str) -> tuple[BillRequest, dict[str, Any]]:
    """Read a JSON report: what was asked for then, and the report itself."""
    try:
        document = msgspec.json.decode(Path(path).read_bytes())
        return msgspec.convert(document["request"], BillRequest), document
    except OSError as error:
        raise UserError(
            f"--verify={path}: {error.strerror}; give a file that podgpu report -o json wrote"
        ) from None
    except (msgspec.MsgspecError, KeyError, TypeError):
        raise UserError(
            f"--verify={path}: not a report that can be made again; give one of -o json"
        ) from None


def differences(before: dict[str, Any], now: dict[str, Any]) -> Sequence[str]:
    """Compare two JSON reports: their inputs, and every row."""
    if before.get("inputs_sha256") == now["inputs_sha256"] and before["rows"] == now["rows"]:
        return ()
    names = tuple(now["by"])

    def rows_of(document: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
        return {(each["row"], *(each.get(name, "") for name in names)): each for each in document["rows"]}

    old, new = rows_of(before), rows_of(now)
    changed = []
    for key in sorted(old.keys() | new.keys()):
        then, today = old.get(key, {}), new.get(key, {})
        fields = sorted(name for name in then.keys() | today.keys() if then.get(name) != today.get(name))
        values = ", ".join(f"{name} {then.get(name, '-')} -> {today.get(name, '-')}" for name in fields)
        if fields:
            changed.append(f"{'/'.join(part for part in key if part)}: {values}")
    return changed or ("the rows are the same, but not all that they are made of",)
