"""Shared by all tests; the builders live in tests/support."""
