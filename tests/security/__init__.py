"""What docs/security.md claims, where no other test shows it: attacks on the program as users run it."""
