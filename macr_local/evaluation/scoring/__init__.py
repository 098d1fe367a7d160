"""How answers are read and judged."""
