"""A weather station: sensors in, a page out."""
