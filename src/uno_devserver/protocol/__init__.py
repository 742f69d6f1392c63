"""MCP for servers and clients, in both eras, over HTTP and over lines. Knows no policy and no product.

The seams are `service.py` (what a server offers) and `client/connection.py` (what a client can do with a server).
"""
