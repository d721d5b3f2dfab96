"""Evaluations with generated questions on long documents, every mode beside its bound. A leaf."""
