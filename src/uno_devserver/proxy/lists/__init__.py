"""The lists that clients see: read from the upstream, merged with ours, published, and saved for the next start."""
