"""The part that reads the client's messages, answers what it can at once, and writes all answers."""
