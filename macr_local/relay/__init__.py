"""The relay itself, in pure Python: no llama.cpp, no ctypes, testable with scripted members."""
