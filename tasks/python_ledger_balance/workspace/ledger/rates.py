"""Exchange rates by currency and date."""

from bisect import bisect_left, bisect_right
from decimal import Decimal

from .errors import BookError
from .money import exponent


class RateTable:
    """Prices of foreign currencies in the base currency."""

    def __init__(self, base):
        self.base = base
        self._dates = {}
        self._rates = {}

    def add(self, currency, date, rate):
        if currency == self.base:
            raise BookError(f"{currency} is the base currency")
        if rate <= 0:
            raise BookError("a rate must be positive")
        dates = self._dates.setdefault(currency, [])
        rates = self._rates.setdefault(currency, [])
        place = bisect_left(dates, date)
        if place < len(dates) and dates[place] == date:
            rates[place] = rate
        else:
            dates.insert(place, date)
            rates.insert(place, rate)

    def rate_on(self, currency, date):
        place = bisect_right(self._dates.get(currency, []), date)
        if place == 0:
            raise BookError(f"no rate for {currency} on {date}")
        return self._rates[currency][place - 1]

    def to_base(self, amount, currency, date):
        """Converts minor units of a currency to minor units of the base currency."""
        if currency == self.base:
            return amount
        shift = exponent(self.base) - exponent(currency)
        return int((amount * self.rate_on(currency, date)).scaleb(shift).quantize(Decimal(1)))
