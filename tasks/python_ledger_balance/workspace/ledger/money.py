"""Amounts as whole minor units, rounding, and allocation."""

from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from fractions import Fraction

from .errors import BookError

EXPONENTS = {"BHD": 3, "CHF": 2, "EUR": 2, "GBP": 2, "ISK": 0, "JPY": 0, "KWD": 3, "SEK": 2, "USD": 2}


def exponent(currency):
    try:
        return EXPONENTS[currency]
    except KeyError:
        raise BookError(f"unknown currency `{currency}`") from None


def parse_decimal(text):
    try:
        value = Decimal(text)
    except (InvalidOperation, TypeError):
        raise BookError(f"`{text}` is not a number") from None
    if not value.is_finite():
        raise BookError(f"`{text}` is not a number")
    return value


def parse_amount(text, currency):
    """Returns an amount in minor units."""
    minor = parse_decimal(text).scaleb(exponent(currency))
    if minor != minor.to_integral_value():
        raise BookError(f"`{text}` has too many decimals for {currency}")
    return int(minor)


def format_amount(minor, currency):
    return f"{Decimal(minor).scaleb(-exponent(currency)):.{exponent(currency)}f}"


def round_minor(value):
    """Rounds a number of minor units to a whole one."""
    return int((value + Decimal("0.5")).to_integral_value(ROUND_FLOOR))


def allocate(total, weights):
    """Splits a total in proportion to the weights. The shares add up to the total."""
    whole = sum(weights)
    exact = [Fraction(total * weight, whole) for weight in weights]
    shares = [value.numerator // value.denominator for value in exact]
    missing = total - sum(shares)
    by_fraction = sorted(range(len(weights)), key=lambda index: shares[index] - exact[index])
    for index in by_fraction[:missing]:
        shares[index] += 1
    return shares
