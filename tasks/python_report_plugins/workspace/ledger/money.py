def euros(cents):
    """Formats an amount of cents: `1234567` is `12,345.67`."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole:,}.{rest:02}"
