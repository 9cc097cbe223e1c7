"""Amounts of a currency together with their value in the base currency."""

from decimal import Decimal

from .errors import BookError
from .money import round_minor


class Balance:
    """Money that is owed or owned: an amount and its base."""

    def __init__(self, amount=0, base=0):
        self.amount = 0
        self.base = 0
        self._price = Decimal(0)
        self.put(amount, base)

    def put(self, amount, base):
        self.amount += amount
        self.base += base
        if self.amount:
            self._price = Decimal(self.base) / self.amount

    def take(self, amount):
        """Takes an amount out and returns its base."""
        if amount <= 0:
            raise BookError("amounts must be positive")
        if amount > self.amount:
            raise BookError("not enough is open")
        base = round_minor(amount * self._price)
        self.amount -= amount
        self.base -= base
        return base
