"""PyTorch twins of llama.cpp's graphs: the same arithmetic, so that a trained twin exports to GGUF."""
