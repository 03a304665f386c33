"""Rules over the rows of marts, and the findings they make."""
