"""What is unfinished at the end of a run, and how a later run resumes it."""
