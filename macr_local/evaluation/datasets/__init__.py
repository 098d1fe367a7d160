"""Data sets as users have them on disk, read row by row."""
