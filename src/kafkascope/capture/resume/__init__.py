"""Saves what is unfinished at the end of a run, so that a later run resumes it."""
