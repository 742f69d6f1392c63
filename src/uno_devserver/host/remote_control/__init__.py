"""The `/rc` WebSocket, on which running apps and the Host exchange frames."""
