"""Edits one entry of a configuration file, and keeps all other bytes."""
