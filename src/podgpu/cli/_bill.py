"""Makes the bill that a user asks for, writes it to files, and makes an older one again."""

import gc
import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from podgpu.cli._focus import FOCUS, PARQUET, check_focus, focus_csv, focus_parquet, has_parquet
from podgpu.cli._output import print_problems
from podgpu.cli._store import ask_store
from podgpu.cli._target.progress import show_store_progress
from podgpu.cluster.report.bill import BillRequest, BillWords, make_bill
from podgpu.cluster.report.sums import DAY, HOUR
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Statement
from podgpu.option.times import calendar_period, period_name, utc_text
from podgpu.views.statement import report_csv, report_json

_CHARGE_SECONDS = {"hour": HOUR, "day": DAY}
_DERIVED = ("wasted_hours", "wasted_cost")  # from other fields; reports of older versions lack them


def words(arguments: Namespace, now: float) -> BillWords:
    given = {name: getattr(arguments, name) for name in BillWords.__struct_fields__}
    if arguments.period:
        if arguments.start or arguments.end:
            raise UserError(f"--period={arguments.period} says when; give it, or --from and --to")
        given["start"], given["end"] = map(utc_text, calendar_period(arguments.period, now))
    return BillWords(**{name: value for name, value in given.items() if value is not None})


def made(config: Config, asked: BillRequest, arguments: Namespace, now: float) -> Statement:
    """Raise UserError if there is nothing to bill, or if the question makes no sense."""
    has_focus = arguments.output in (FOCUS, PARQUET) or arguments.write_to
    charge = _CHARGE_SECONDS[arguments.charge_period] if has_focus else None
    was_enabled = gc.isenabled()
    # Millions of counters live until the end, and none is in a cycle: looking for cycles takes a quarter of the time.
    gc.disable()
    try:
        return ask_store(
            config,
            lambda store: make_bill(store, asked, now, charge_seconds=charge, progress=show_store_progress),
            whole=not arguments.partial,
        )
    finally:
        if was_enabled:
            gc.enable()


def write_bill(statement: Statement, asked: BillRequest, folder: str) -> None:
    """Write the bill in every format for other programs. A file gets its name once it is complete."""
    stem = f"report-{period_name(statement.start, statement.end)}"
    pages = {
        f"{stem}.csv": report_csv(statement, asked.document).encode(),
        f"{stem}.json": report_json(statement, asked.document).encode(),
    }
    try:
        check_focus(FOCUS, asked.prices)
        pages[f"{stem}.focus.csv"] = focus_csv(statement).encode()
        if has_parquet():
            pages[f"{stem}.focus.parquet"] = focus_parquet(statement)
    except UserError as error:
        print_problems([f"{stem}.focus.csv is not written: {error}"])
    try:
        for name, page in pages.items():
            partial = Path(folder) / f".{name}.{os.getpid()}"
            try:
                partial.write_bytes(page)
                partial.replace(Path(folder) / name)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"--write-to={folder}: {error.strerror}; give a folder that exists and can be written to"
        ) from None


class WrittenReport(Struct, frozen=True):
    """What is compared of a JSON report."""

    request: BillRequest
    by: list[str]
    rows: list[dict[str, Any]]
    inputs_sha256: str = ""


decoded_report = msgspec.json.Decoder(WrittenReport).decode


def read_report(path: str) -> WrittenReport:
    try:
        return decoded_report(Path(path).read_bytes())
    except OSError as error:
        raise UserError(f"--verify={path}: {error.strerror}; give a file that podgpu report -o json wrote") from None
    except msgspec.MsgspecError:
        raise UserError(f"--verify={path}: not a report that can be made again; give one of -o json") from None


def differences(before: WrittenReport, now: WrittenReport) -> Sequence[str]:
    """Compare two JSON reports: their inputs, and every row."""

    def rows_of(report: WrittenReport) -> dict[tuple[str, ...], dict[str, Any]]:
        return {
            tuple(str(row.get(name, "")) for name in ("row", *now.by)): {
                name: value for name, value in row.items() if name not in _DERIVED
            }
            for row in report.rows
        }

    old, new = rows_of(before), rows_of(now)
    if before.inputs_sha256 == now.inputs_sha256 and [*old.items()] == [*new.items()]:
        return ()
    changed = []
    for key in sorted(old.keys() | new.keys()):
        then, today = old.get(key, {}), new.get(key, {})
        fields = sorted(name for name in then.keys() | today.keys() if then.get(name) != today.get(name))
        values = ", ".join(f"{name} {then.get(name, '-')} -> {today.get(name, '-')}" for name in fields)
        if fields:
            changed.append(f"{'/'.join(part for part in key if part)}: {values}")
    return changed or ("the rows are the same, but not all that they are made of",)
