"""Benchmarks, a leaf: nothing imports it but the command line."""
