"""Checkpoints, runs that grow into them, the queue that trains them, and the experiments that are
offered.
"""
