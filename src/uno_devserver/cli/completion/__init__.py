"""What lets shells complete the command line: made from the table of commands, for each shell in its own language."""
