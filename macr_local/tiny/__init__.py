"""The embedded pool, and the world that it was trained on."""
