"""Trained twins as GGUF files: one for the language model, one for the vision encoder with its projector."""
