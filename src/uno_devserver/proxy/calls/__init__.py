"""What becomes of a request: relayed, held, queued, repeated, or answered by the proxy."""
