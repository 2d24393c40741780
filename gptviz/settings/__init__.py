"""Settings: fields that describe themselves, the values of an address, and messages about unknown
names.
"""
