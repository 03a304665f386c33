"""Decodes many frames into Arrow columns. Needs the `columns` extra; the error of an import without it names it."""

from importlib.util import find_spec

from kafkascope.errors import UsageError

_MISSING = [name for name in ("numba", "pyarrow") if find_spec(name) is None]
if _MISSING:
    raise UsageError(f"columns need {' and '.join(_MISSING)}: pip install 'kafkascope[columns]'")
