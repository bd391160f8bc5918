"""Parses the file with the prices of GPUs and of energy."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podgpu.errors import UserError
from podgpu.model import PriceChange, Prices
from podgpu.option.file import yaml_document
from podgpu.option.value import ValueParser, did_you_mean

FORM = "docs/report.md shows such a file"
_KEYS = ("currency", "gpu_hour", "kwh", "changes")
_CHANGE_KEYS = ("from", "gpu_hour", "kwh")
_CURRENCY = re.compile(r"\S{1,8}")
_PRICE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def _prices(text: str) -> Prices:
    path = Path(text)
    document = yaml_document(path, FORM)
    if not isinstance(document, dict):
        raise UserError(f"{path}: the file must hold currency and gpu_hour; {FORM}")
    _check_keys(path, document, _KEYS)
    currency = document.get("currency")
    if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise UserError(f"{path}: currency must be a short word, such as EUR")
    changes = document.get("changes", [])
    if not isinstance(changes, list) or not all(isinstance(change, dict) for change in changes):
        raise UserError(f"{path}: changes must be a list of new prices, each with from and gpu_hour; {FORM}")
    return Prices(
        currency=currency,
        gpu_hour=_by_model(path, document.get("gpu_hour")),
        kwh=_kwh(path, document),
        changes=tuple(sorted((_change(path, change) for change in changes), key=lambda change: change.since)),
    )


def _check_keys(path: Path, document: dict[Any, Any], known: tuple[str, ...]) -> None:
    for key in document:
        if key not in known:
            raise UserError(f"{path}: unknown key {key!r}; {did_you_mean(str(key), known, FORM)}")


def _change(path: Path, change: dict[Any, Any]) -> PriceChange:
    _check_keys(path, change, _CHANGE_KEYS)
    try:
        since = datetime.fromisoformat(str(change.get("from")))
    except ValueError:
        raise UserError(
            f"{path}: from must be a date or a time, such as 2026-11-15, not {change.get('from')!r}"
        ) from None
    since = since if since.tzinfo else since.replace(tzinfo=UTC)
    gpu_hour = _by_model(path, change.get("gpu_hour"))
    return PriceChange(since=since.timestamp(), gpu_hour=gpu_hour, kwh=_kwh(path, change))


def _kwh(path: Path, document: dict[Any, Any]) -> float | None:
    return _price(path, "kwh", document["kwh"]) if "kwh" in document else None


def _by_model(path: Path, entries: object) -> dict[str, float]:
    if not isinstance(entries, dict) or not entries:
        raise UserError(f"{path}: gpu_hour must hold a price for each model, such as 'NVIDIA H200: 3.50'")
    return {str(model): _price(path, str(model), entry) for model, entry in entries.items()}


def _price(path: Path, model: str, entry: object) -> float:
    if not isinstance(entry, str) or not _PRICE.fullmatch(entry):
        raise UserError(f"{path}: the price of {model!r} must be a number without a sign, such as 3.50")
    return float(entry)


prices = ValueParser("PATH", _prices)
