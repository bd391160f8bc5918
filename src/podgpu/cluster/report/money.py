"""Money in integers of a currency's smallest unit, so that rows add up to their total."""

from collections.abc import Sequence
from fractions import Fraction

# ISO 4217: how many decimals a currency has, where it is not two.
_DIGITS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
}
_BY_CURRENCY = {currency: digits for digits, names in _DIGITS.items() for currency in names.split()}
USUAL_DIGITS = 2


def digits_of(currency: str) -> int:
    return _BY_CURRENCY.get(currency, USUAL_DIGITS)


def rounded(amount: Fraction) -> int:
    """Round a half away from zero, as bills are rounded."""
    whole = int(abs(amount) + Fraction(1, 2))
    return whole if amount >= 0 else -whole


def apportioned(amounts: Sequence[Fraction], total: int | None = None) -> list[int]:
    """Round amounts to integers that add up to the total, or to the rounded sum: those that lose most gain first."""
    whole = [amount.numerator // amount.denominator for amount in amounts]
    missing = (rounded(sum(amounts, Fraction(0))) if total is None else total) - sum(whole)
    by_loss = sorted(range(len(whole)), key=lambda at: (whole[at] - amounts[at], at))
    for at in by_loss[:missing]:
        whole[at] += 1
    return whole


def divided(total: int, weights: Sequence[int]) -> list[int]:
    """Divide an integer in proportion to weights; evenly if they are all 0."""
    sum_of_weights = sum(weights)
    if not sum_of_weights:
        weights, sum_of_weights = [1] * len(weights), len(weights)
    return apportioned([Fraction(total * weight, sum_of_weights) for weight in weights], total)
