"""The surroundings of a page's content: words explained, a tour, lessons, the next step, sharing,
the presentation.
"""
