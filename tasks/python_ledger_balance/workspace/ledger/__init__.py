"""Receivables ledger with several currencies."""
