"""Which workspace a proxy serves, and when that changes."""
