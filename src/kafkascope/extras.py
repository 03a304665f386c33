"""Lists the extras of the package, and raises a one-line error if one is missing."""

from importlib.util import find_spec

from kafkascope.errors import UsageError
from kafkascope.formatting import join_names

# Modules that each extra installs, as in pyproject.toml, and that are checked for.
EXTRAS = {
    "columns": ("numba", "pyarrow"),
    "live": ("cryptography",),
    "lake": ("deltalake", "numba", "pyarrow"),
    "spark": ("pyspark", "pandas", "deltalake", "numba", "pyarrow"),
    "explorer": ("starlette", "uvicorn", "jinja2", "markdown_it"),
}
# Modules whose package has another name.
PACKAGES = {"markdown_it": "markdown-it-py"}


def need_extras(what: str, *extras: str) -> None:
    """UsageError: report needs deltalake: pip install 'kafkascope[lake]'"""
    packages = dict.fromkeys(package for extra in extras for package in EXTRAS[extra])
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise UsageError(
            f"{what} needs {join_names([PACKAGES.get(name, name) for name in missing])}: {install_line(*extras)}"
        )


def install_line(*extras: str) -> str:
    return f"pip install 'kafkascope[{','.join(extras)}]'"
