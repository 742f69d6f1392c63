"""The IDE channel, a named pipe on which one IDE and the Host exchange messages."""
