"""A statement as rows of the FinOps Open Cost and Usage Specification (FOCUS) 1.2."""

import csv
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO, StringIO

import msgspec

from podgpu import __version__
from podgpu.assembly.machine import has_package
from podgpu.errors import UserError
from podgpu.model import ChargePeriod, Prices, Statement, StatementLine
from podgpu.model.statement import MICROSECONDS_PER_HOUR, MILLIJOULES_PER_KWH
from podgpu.views.format import STATEMENT_ROWS
from podgpu.views.row_table import csv_cell
from podgpu.views.statement import problems

FOCUS, PARQUET = "focus", "focus-parquet"  # formats of `-o`

FocusValue = str | Decimal | datetime | bool | None
FocusRow = Mapping[str, FocusValue]

_HOUR = Decimal(MICROSECONDS_PER_HOUR)
_KWH = Decimal(MILLIJOULES_PER_KWH)
_CURRENCY = re.compile("[A-Z]{3}")
_DECIMALS = 12
_PRECISION = Decimal(1).scaleb(-_DECIMALS)
_NUMBERS = ("Cost", "Quantity", "UnitPrice", "Hours", "Kwh", "Coverage")  # how their columns end; all others are text
_TIMES = ("PeriodStart", "PeriodEnd")
_FLAGS = ("x_Complete", "x_Demo")
# Tools for FOCUS 1.0 want these columns, which podgpu cannot fill.
_NOT_ABOUT_GPUS = (
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountName",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "RegionId",
    "RegionName",
)


def check_focus(output: str, prices: Prices | None) -> None:
    """Raise UserError if the format cannot be written, whatever the store says."""
    if output == PARQUET and not has_parquet():
        raise UserError(
            f"-o {PARQUET} needs one more package; run pip install 'podgpu[parquet]', or write CSV with -o {FOCUS}"
        )
    if output == PARQUET and sys.stdout.isatty():
        raise UserError(f"-o {PARQUET} is not for a terminal; write it to a file with >FILE")
    if not prices:
        raise UserError(f"-o {output} is about costs; give --price a file with prices")
    if not _CURRENCY.fullmatch(prices.currency):
        raise UserError(
            f"-o {output} needs a currency of ISO 4217, such as EUR; the file of --price says {prices.currency}"
        )


def has_parquet() -> bool:
    return has_package("pyarrow")


def focus_csv(statement: Statement) -> str:
    """Write a row for each charge period of each group, of what nobody held, and of what was not seen."""
    rows = list(_rows(statement))
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
        writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return out.getvalue()


def focus_parquet(statement: Statement) -> bytes:
    """Write the same rows as CSV. Tags are JSON in a string here too, as FOCUS requires of every format."""
    import pyarrow as pa
    from pyarrow import parquet

    def type_of(name: str) -> object:
        if name.endswith(_NUMBERS):
            return pa.decimal128(38, _DECIMALS)
        if name.endswith(_TIMES):
            return pa.timestamp("ms", tz="UTC")
        return pa.bool_() if name in _FLAGS else pa.string()

    rows = list(_rows(statement))
    schema = pa.schema([(name, type_of(name)) for name in rows[0]] if rows else [])
    out = BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), out)
    return out.getvalue()


def _cell(value: FocusValue) -> object:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(value).lower() if isinstance(value, bool) else csv_cell(value)


def _rows(statement: Statement) -> Iterator[FocusRow]:
    if statement.unpriced:
        raise UserError(f"FOCUS needs every price; add {', '.join(statement.unpriced)} to the file of --price")
    notices = "; ".join(problems(statement)) or None
    for charge_period in statement.periods:
        for line in charge_period.lines:
            if line.cost_units or line.charged or line.held_us or line.busy_us:
                yield _row(statement, charge_period, line, notices)


def _row(statement: Statement, charge_period: ChargePeriod, line: StatementLine, notices: str | None) -> FocusRow:
    cost = Decimal(line.cost_units or 0).scaleb(-statement.digits)
    is_energy = statement.basis == "energy"
    name = "/".join(line.group.values()) if line.kind == "group" else STATEMENT_ROWS[line.kind][0]
    account = line.group.get("cluster") or "podgpu"
    return {
        "BilledCost": cost,
        "BillingAccountId": account,
        "BillingAccountName": account,
        "BillingAccountType": "Kubernetes cluster",
        "BillingCurrency": statement.currency,
        "BillingPeriodEnd": _time(statement.end),
        "BillingPeriodStart": _time(statement.start),
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeDescription": _description(statement, line, name),
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": _time(charge_period.end),
        "ChargePeriodStart": _time(charge_period.start),
        **dict.fromkeys(_NOT_ABOUT_GPUS),
        "ContractedCost": cost,
        "EffectiveCost": cost,
        "InvoiceIssuerName": "podgpu",
        "ListCost": cost,
        "PricingCategory": "Standard",
        **_quantities(line, cost, statement.basis),
        "ProviderName": "podgpu",
        "PublisherName": "podgpu",
        "ResourceId": name,
        "ResourceName": name,
        "ResourceType": f"Kubernetes {'/'.join(statement.by)}" if line.kind == "group" else "GPU",
        "ServiceCategory": "Compute",
        "ServiceName": "GPU",
        "ServiceSubcategory": "Containers",
        "SkuId": f"gpu-{statement.basis}",
        "SkuMeter": "GPU energy" if is_energy else f"GPU time {statement.basis}",
        "SkuPriceId": f"gpu-{statement.basis}-{statement.currency}",
        "SubAccountId": line.group.get("namespace") or name,
        "SubAccountName": line.group.get("namespace") or name,
        "SubAccountType": "Kubernetes namespace" if line.group.get("namespace") else "Group",
        "Tags": msgspec.json.encode(line.group).decode(),
        "x_Row": line.kind,
        "x_Basis": statement.basis,
        "x_HeldHours": _quotient(line.held_us, _HOUR),
        "x_BusyHours": _quotient(line.busy_us, _HOUR),
        "x_EnergyKwh": _quotient(line.energy_mj, _KWH),
        "x_Coverage": None if (ratio := statement.coverage.ratio) is None else Decimal(f"{ratio:.6f}"),
        "x_Notices": notices,
        "x_Complete": statement.complete,
        "x_Demo": statement.demo,
        "x_Version": __version__,
        "x_InputsSha256": statement.inputs_sha256,
    }


def _quantities(line: StatementLine, cost: Decimal, basis: str) -> FocusRow:
    """Return what the row is charged by. Without a charge of its own it has no quantity, and so no unit price."""
    unit, per_unit = ("kWh", _KWH) if basis == "energy" else ("GPU-Hours", _HOUR)
    charged = Decimal(line.charged) / per_unit if line.charged else None
    # If several want more than the GPU's time, each pays for less than it had.
    had = {"held": line.held_us, "used": line.busy_us}.get(basis) if line.kind == "group" else None
    consumed = Decimal(had) / per_unit if had else charged
    price = cost / charged if charged else None
    return {
        "ConsumedQuantity": _plain(consumed),
        "ConsumedUnit": unit,
        "ContractedUnitPrice": _plain(price),
        "ListUnitPrice": _plain(price),
        "PricingQuantity": _plain(charged),
        "PricingUnit": unit,
    }


def _description(statement: Statement, line: StatementLine, name: str) -> str:
    if line.kind == "group":
        return f"GPUs of {name}, by {statement.basis}"
    return f"{name}: {STATEMENT_ROWS[line.kind][1]}"


def _quotient(amount: int | None, unit: Decimal) -> Decimal | None:
    return None if amount is None else _plain(Decimal(amount) / unit)


def _plain(number: Decimal | None) -> Decimal | None:
    return None if number is None else number.quantize(_PRECISION).normalize()


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(int(at), UTC)
