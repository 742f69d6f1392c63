"""The page that shows what a proxy does, and its HTTP server. Knows nothing of the proxy."""
