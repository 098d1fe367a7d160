"""Scenes: 64x64 images of two to four numbered shapes, questions about them, and worked answers."""
