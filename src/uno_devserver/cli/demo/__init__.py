"""`demo`: what this program does, shown and proven in a few seconds.

`command.py` runs it, `story.py` is what happens, `stage.py` where, `agent.py` who asks, `texts.py` the files that are
there, and `narrator.py` what is read.
"""
