"""Offline evaluation: data sets, scoring, runs that survive a kill, and what may be said of their results."""
