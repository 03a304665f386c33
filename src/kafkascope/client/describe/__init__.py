"""Views of a live cluster: each module fetches one and returns it as a frozen value, with a list of what it lacks."""
