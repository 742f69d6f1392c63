"""What the inspector page shows of a proxy, and the HTTP listeners that serve it."""
