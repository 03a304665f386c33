"""Names where reading a file raised. Nothing of the file is in it."""

import traceback
from pathlib import Path


def why_of(error: Exception) -> str:
    """Type and place of an error, without its message, which may hold bytes of the file."""
    frames = traceback.extract_tb(error.__traceback__)
    own = next((frame for frame in reversed(frames) if "kafkascope" in Path(frame.filename).parts), None)
    return f"reading it raised {type(error).__name__}" + (f" ({Path(own.filename).name}:{own.lineno})" if own else "")
