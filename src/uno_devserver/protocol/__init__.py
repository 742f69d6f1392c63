"""MCP for servers and clients, in both eras (handshake and modern), over HTTP and over lines, without any policy.

The seams are `service.py` (what a server offers) and `client/connection.py` (what a client can do with a server).
"""
