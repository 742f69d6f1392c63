"""The servers behind the proxies: each keeps a ledger of what it ran, and does mischief when it is told to."""
