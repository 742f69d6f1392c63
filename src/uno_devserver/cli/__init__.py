"""The command line: parses the arguments, runs the command, and prints its result."""
