"""Runs jobs with dependencies in one asyncio loop."""
