"""How the embedded pools were made: worlds, tokenizers, networks, training, export to GGUF."""
