"""Benchmarks; each module runs by itself: ``python -m benchmarks.speed``."""
