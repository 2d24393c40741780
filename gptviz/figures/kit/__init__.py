"""The parts that figures share: the theme, numbers as text, heat maps, lines, points."""
