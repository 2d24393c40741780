"""The subject of a page: which model, at which step of training, with which edits, reads which prompt."""
