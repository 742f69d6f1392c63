"""The process that an AI client is connected to: it always answers, and keeps a server running behind it."""
