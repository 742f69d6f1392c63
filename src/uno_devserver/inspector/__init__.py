"""The page that shows what a proxy does, and its HTTP side. It knows HTTP and the page, and nothing of the proxy."""
