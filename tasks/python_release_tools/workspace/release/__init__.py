"""Builds the manifest of a release."""
