"""The health of a proxy: its report, the issues of its upstream, and its status file."""
