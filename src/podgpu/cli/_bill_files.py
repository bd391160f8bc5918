"""Writes a bill to files, in every format that other programs read."""

import os
from pathlib import Path

from podgpu.cli._focus import FOCUS, check_focus, focus_csv, focus_parquet, has_parquet
from podgpu.cli._output import print_problems
from podgpu.cluster.report.bill import BillRequest
from podgpu.errors import UserError
from podgpu.model import Statement
from podgpu.option.times import period_name
from podgpu.views.statement import report_csv, report_json


def write_bill(found: Statement, asked: BillRequest, folder: str) -> None:
    """A file has its name only once it is whole, so no reader sees half of a bill."""
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
