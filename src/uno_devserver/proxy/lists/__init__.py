"""The lists that clients see: read from the upstream, merged with ours, published, kept on disk."""
