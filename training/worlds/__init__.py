"""The two worlds the tiny models live in. Nothing here needs PyTorch."""
