"""Edits of one entry of a configuration file, which keep all other bytes."""
