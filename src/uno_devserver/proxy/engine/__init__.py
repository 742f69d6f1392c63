"""What keeps an upstream running and connected, behind the front."""
