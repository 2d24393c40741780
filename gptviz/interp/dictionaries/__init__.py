"""Dictionaries: sparse features that the stream of a model is made of; how they are fitted, and how
good they are.
"""
