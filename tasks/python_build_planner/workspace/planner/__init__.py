"""Chooses versions of packages for a project and plans their build."""
