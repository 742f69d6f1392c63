"""Notices by file content that code has changed, builds it, and restarts the process that runs it."""
