"""What a proxy tells of itself."""
