"""Makes the bill that a user asks for, writes it to files, and makes an older one again."""

import asyncio
import gc
import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from podgpu.cli._focus import FOCUS, PARQUET, check_focus, focus_csv, focus_parquet, has_parquet
from podgpu.cli._output import print_problems
from podgpu.cli._target.progress import show_store_progress
from podgpu.cluster.report.bill import BillRequest, BillWords, fault_text, make_bill
from podgpu.cluster.report.sums import DAY, HOUR
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import StoreFault
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Statement
from podgpu.option.times import calendar_period, iso, period_name
from podgpu.views.statement import report_csv, report_json

_CHARGE_SECONDS = {"hour": HOUR, "day": DAY}


def words(arguments: Namespace, now: float) -> BillWords:
    given = {name: getattr(arguments, name) for name in BillWords.__struct_fields__}
    if arguments.period:
        if arguments.start or arguments.end:
            raise UserError(f"--period={arguments.period} says when; give it, or --from and --to")
        given["start"], given["end"] = map(iso, calendar_period(arguments.period, now))
    return BillWords(**{name: value for name, value in given.items() if value is not None})


def least_coverage(arguments: Namespace) -> float:
    """How much of the GPUs' time must have been seen, from 0 to 1."""
    if arguments.min_coverage is None:
        return 0.0 if arguments.allow_gaps else 1.0
    try:
        least = float(arguments.min_coverage)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise UserError(f"--min-coverage={arguments.min_coverage} is no ratio; give a number from 0 to 1, such as 0.99")
    return least


def made(config: Config, asked: BillRequest, arguments: Namespace, now: float) -> Statement:
    """Raises UserError where there is nothing to bill, or where the question makes no sense."""
    was_enabled = gc.isenabled()
    # Millions of counters live until the end, and none is in a cycle: looking for cycles takes a quarter of the time.
    gc.disable()
    try:
        return asyncio.run(_read(config, asked, arguments, now))
    finally:
        if was_enabled:
            gc.enable()


async def _read(config: Config, asked: BillRequest, arguments: Namespace, now: float) -> Statement:
    store = Store(config.of(StoreOptions), whole=not arguments.partial)
    has_focus = arguments.output in (FOCUS, PARQUET) or arguments.write_to
    charge = _CHARGE_SECONDS[arguments.charge_period] if has_focus else None
    try:
        return await make_bill(store, asked, now, charge_seconds=charge, progress=show_store_progress)
    except StoreFault as fault:
        raise UserError(fault_text(fault)) from None
    finally:
        await store.close()


def write_bill(found: Statement, asked: BillRequest, folder: str) -> None:
    """Write it in every format that other programs read. No reader sees half of it: a whole file gets its name."""
    stem = f"report-{period_name(found.start, found.end)}"
    pages = {
        f"{stem}.csv": report_csv(found, asked.document).encode(),
        f"{stem}.json": report_json(found, asked.document).encode(),
    }
    try:
        check_focus(FOCUS, asked.prices)
        pages[f"{stem}.focus.csv"] = focus_csv(found).encode()
        if has_parquet():
            pages[f"{stem}.focus.parquet"] = focus_parquet(found)
    except UserError as error:
        print_problems([f"{stem}.focus.csv is not written: {error}"])
    try:
        for name, page in pages.items():
            half = Path(folder) / f".{name}.{os.getpid()}"
            half.write_bytes(page)
            half.replace(Path(folder) / name)
    except OSError as error:
        raise UserError(
            f"--write-to={folder}: {error.strerror}; give a folder that exists and can be written to"
        ) from None


def again(path: str) -> tuple[BillRequest, dict[str, Any]]:
    """Read a JSON report: what was asked for then, and the report itself."""
    try:
        document = msgspec.json.decode(Path(path).read_bytes())
        return msgspec.convert(document["request"], BillRequest), document
    except OSError as error:
        raise UserError(f"--verify={path}: {error.strerror}; give a file that podgpu report -o json wrote") from None
    except (msgspec.MsgspecError, KeyError, TypeError):
        raise UserError(f"--verify={path}: not a report that can be made again; give one of -o json") from None


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
