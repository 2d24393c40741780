"""The records of the pages, a file each: `PAGE`, and the names of its views. They import nothing
else of the interface.
"""
