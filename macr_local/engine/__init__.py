"""The engine: llama.cpp contexts behind the Member protocol. The only package that imports llama_cpp."""
