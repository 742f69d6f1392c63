"""Access to the operating system and its files; the differences between systems are handled here alone."""
