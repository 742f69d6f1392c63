"""From a client's request to one true answer, whatever becomes of the upstream meanwhile."""
