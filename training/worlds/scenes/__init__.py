"""Scenes: a 64x64 image of four places, each empty or with one coloured shape, and questions about it."""
