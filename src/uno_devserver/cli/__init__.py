"""The command line: parse, run, result, render."""
