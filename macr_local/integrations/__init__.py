"""Other harnesses that can ask a pool; each file imports its harness, and nothing here does."""
