"""Measures of quality on generated tasks: seeded, offline. A leaf; nothing imports it."""
