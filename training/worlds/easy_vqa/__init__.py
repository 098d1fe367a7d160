"""easy-VQA: a 64x64 image of one coloured shape, and questions about its color or shape."""
