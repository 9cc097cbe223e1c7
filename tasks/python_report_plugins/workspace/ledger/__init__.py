"""Reports on ledger records."""
