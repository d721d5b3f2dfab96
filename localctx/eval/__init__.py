"""Measurements of quality, each beside its baselines."""
