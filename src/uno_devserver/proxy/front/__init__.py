"""The part that never keeps a client waiting: what it reads, what it answers at once, and how it writes."""
