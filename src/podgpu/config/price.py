"""The file with the prices of GPUs, and the option that names it."""

import re
from dataclasses import dataclass
from pathlib import Path

from podgpu.errors import UserError
from podgpu.model import Prices
from podgpu.option import STORE, optional
from podgpu.option.document import yaml_document
from podgpu.option.spelling import did_you_mean

FORM = "docs/report.md shows such a file"
_KEYS = ("currency", "gpu_hour")
_CURRENCY = re.compile(r"\S{1,8}")
_PRICE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def prices(text: str) -> Prices:
    path = Path(text)
    document = yaml_document(path, FORM)
    if not isinstance(document, dict):
        raise UserError(f"{path}: the file must hold currency and gpu_hour; {FORM}")
    for key in document:
        if key not in _KEYS:
            raise UserError(f"{path}: unknown key {key!r}; {did_you_mean(str(key), _KEYS, FORM)}")
    currency = document.get("currency")
    if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise UserError(f"{path}: currency must be a short word, such as EUR")
    return Prices(currency=currency, gpu_hour=_by_model(path, document.get("gpu_hour")))


def _by_model(path: Path, entries: object) -> dict[str, float]:
    if not isinstance(entries, dict) or not entries:
        raise UserError(f"{path}: gpu_hour must hold a price for each model, such as 'NVIDIA H200: 3.50'")
    return {str(model): _price(path, str(model), entry) for model, entry in entries.items()}


def _price(path: Path, model: str, entry: object) -> float:
    if not isinstance(entry, str) or not _PRICE.fullmatch(entry):
        raise UserError(f"{path}: the price of {model!r} must be a number without a sign, such as 3.50")
    return float(entry)


@dataclass(frozen=True, kw_only=True)
class PriceOptions:
    price: Prices | None = optional(
        "--price",
        group=STORE,
        help="YAML or JSON file with what an hour of each model of GPU costs.",
        parse=prices,
        value_name="PATH",
    )
