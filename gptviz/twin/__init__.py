"""A decoder as one file of plain Python: a template for each part, of which a file has those that
its model uses.
"""
