"""The command line: one small file per command. Command modules import nothing heavy until they run."""
