"""Examines whether a registered server works."""
