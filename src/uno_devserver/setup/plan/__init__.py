"""Plans what a registration changes in a client's files."""
