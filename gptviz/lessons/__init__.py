"""Lessons: a text in steps next to live pages, with questions whose answers the model gives."""
