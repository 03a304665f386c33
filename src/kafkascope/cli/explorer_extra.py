"""Says in one line that the extra of the explorer is missing."""

from importlib.util import find_spec

from kafkascope.errors import UsageError


def check_extra(command: str) -> None:
    missing = [name for name in ("starlette", "uvicorn", "jinja2") if find_spec(name) is None]
    if missing:
        raise UsageError(f"{command} needs {' and '.join(missing)}: pip install 'kafkascope[explorer]'")
