"""The stable process: it holds an AI client's connection, always answers, and keeps a server working behind it."""
