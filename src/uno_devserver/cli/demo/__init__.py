"""`demo`: shows and proves in a few seconds what this program does.

`command.py` runs the demo and prints its output, `steps.py` contains the steps, `sandbox.py` the temporary folder,
`client.py` the AI client, and `files.py` the contents of the files.
"""
