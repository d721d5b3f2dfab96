"""The per-model gate: stored KV beside exact attention, and a verdict. A leaf: only cli imports it."""
