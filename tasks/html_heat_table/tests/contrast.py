"""Colors and themes of a style sheet, as docs/COLORS.md describes them."""

import re


def channels(color):
    digits = color.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    return [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]


def luminance(color):
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(color))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    less, more = sorted((luminance(a), luminance(b)))
    return (more + 0.05) / (less + 0.05)


def rules(css, around=""):
    """Yields all rules as (at-rule around it, selectors, declarations)."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    at = 0
    while True:
        start = css.find("{", at)
        if start < 0:
            return
        depth, end = 1, start + 1
        while depth and end < len(css):
            depth += {"{": 1, "}": -1}.get(css[end], 0)
            end += 1
        prelude = css[at:start].rsplit(";", 1)[-1].strip()
        content = css[start + 1 : end - 1]
        if prelude.startswith("@"):
            yield from rules(content, prelude)
        else:
            pairs = (part.split(":", 1) for part in content.split(";") if ":" in part)
            yield around, [one.strip() for one in prelude.split(",")], {name.strip(): value.strip() for name, value in pairs}
        at = end


def themes(css):
    """The custom properties of each theme, without their dashes, resolved."""
    light, dark, chosen = {}, {}, {}
    for around, selectors, declarations in rules(css):
        own = {name[2:]: value for name, value in declarations.items() if name.startswith("--")}
        if not around and any(one in (":root", "html") for one in selectors):
            light.update(own)
        if re.search(r"prefers-color-scheme:\s*dark", around) and any(one.startswith(":root") for one in selectors):
            dark.update(own)
        if not around and any(re.search(r"\[data-theme=[\"']?dark[\"']?\]$", one) for one in selectors):
            chosen.update(own)
    found = {"light": light, "dark": {**light, **dark}, "chosen-dark": {**light, **chosen}}
    return {name: {key: resolved(key, values) for key in values} for name, values in found.items()}


def resolved(name, values):
    value = values[name]
    reference = re.fullmatch(r"var\(\s*--([a-z0-9-]+)\s*\)", value)
    return resolved(reference[1], values) if reference else value.lower()
