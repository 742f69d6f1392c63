"""The page that shows what a proxy does, and its HTTP server; independent of the proxy's code."""
