"""Filters and queries on JSON records."""
