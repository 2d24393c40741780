"""Lessons: a text in steps beside live pages, with questions whose answers the model gives."""
