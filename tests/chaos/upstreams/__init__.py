"""The servers behind the proxies: each keeps a ledger of the calls that it ran, and misbehaves when ordered to."""
