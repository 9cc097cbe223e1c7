"""Replaces the module `datasets`, which the official program imports but tests don't use."""


def load_dataset(*_, **__):
    raise RuntimeError("no dataset can be loaded in a sandbox")
