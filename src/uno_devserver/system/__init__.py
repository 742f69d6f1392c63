"""The operating system and its files: the only place that knows the differences."""
