"""A statement as rows of the FinOps Open Cost and Usage Specification (FOCUS) 1.2."""

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO

import msgspec

from podgpu import __version__
from podgpu.errors import UserError
from podgpu.model import ChargePeriod, Statement, StatementLine
from podgpu.model.statement import MICROSECONDS_PER_HOUR, MILLIJOULES_PER_KWH
from podgpu.views.format import STATEMENT_ROWS
from podgpu.views.row_table import csv_cell
from podgpu.views.statement import problems

_HOUR = Decimal(MICROSECONDS_PER_HOUR)
_KWH = Decimal(MILLIJOULES_PER_KWH)
_CURRENCY = re.compile("[A-Z]{3}")
_PRECISION = Decimal("0.000000000001")
# Tools that know FOCUS 1.0 want these columns, of which podgpu knows nothing.
_NOT_ABOUT_GPUS = (
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountName",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "RegionId",
    "RegionName",
)


def focus_csv(statement: Statement) -> str:
    """Every group has a row for each charge period, and so has what nobody held and what was not seen."""
    rows = list(focus_rows(statement))
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
        writer.writerows([csv_cell(value) for value in row.values()] for row in rows)
    return out.getvalue()


def focus_rows(statement: Statement) -> Iterator[dict[str, str | None]]:
    if not statement.currency:
        raise UserError("-o focus is about costs; give --price a file with prices")
    if not _CURRENCY.fullmatch(statement.currency):
        raise UserError(
            f"-o focus needs a currency of ISO 4217, such as EUR; the file of --price says {statement.currency}"
        )
    if statement.unpriced:
        raise UserError(
            f"-o focus needs every price; add {', '.join(statement.unpriced)} to the file of --price"
        )
    for charge_period in statement.periods:
        for line in charge_period.lines:
            if line.cost_units or line.charged or line.held_us or line.busy_us:
                yield _row(statement, charge_period, line)


def _row(statement: Statement, charge_period: ChargePeriod, line: StatementLine) -> dict[str, str | None]:
    cost = Decimal(line.cost_units or 0).scaleb(-statement.digits)
    is_energy = statement.basis == "energy"
    name = "/".join(line.group.values()) if line.kind == "group" else STATEMENT_ROWS[line.kind][0]
    account = line.group.get("cluster") or "podgpu"
    money = f"{cost:f}"
    return {
        "BilledCost": money,
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
        "ContractedCost": money,
        "EffectiveCost": money,
        "InvoiceIssuerName": "podgpu",
        "ListCost": money,
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
        "x_HeldHours": None if line.held_us is None else f"{Decimal(line.held_us) / _HOUR:f}",
        "x_BusyHours": None if line.busy_us is None else f"{Decimal(line.busy_us) / _HOUR:f}",
        "x_EnergyKwh": None if line.energy_mj is None else f"{Decimal(line.energy_mj) / _KWH:f}",
        "x_Coverage": None if (ratio := statement.coverage.ratio) is None else f"{ratio:.6f}",
        "x_Notices": "; ".join(problems(statement)) or None,
        "x_Complete": str(statement.complete).lower(),
        "x_Demo": str(statement.demo).lower(),
        "x_Version": __version__,
        "x_InputsSha256": statement.inputs_sha256,
    }


def _quantities(line: StatementLine, cost: Decimal, basis: str) -> dict[str, str | None]:
    """Say by what the row is charged. One that pays for nothing itself has no quantity, and so no price of a unit."""
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


def _plain(number: Decimal | None) -> str | None:
    return None if number is None else f"{number.quantize(_PRECISION).normalize():f}"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
