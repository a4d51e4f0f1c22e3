"""Ends its process with a good exit status in the middle of a call."""

import os


def run(hidden_states, weight):
    os._exit(0)
