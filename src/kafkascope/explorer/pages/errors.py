"""Lists every Kafka error code: name, whether to retry, since when, and how many APIs return it."""

from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.errors.error_codes import error_codes
from kafkascope.schema.errors.error_users import uses_of
from kafkascope.schema.export import error_json


def make() -> Page:
    errors = [
        error_json(error) | {"apis": len({use.api for use in uses_of(error)})} for error in error_codes().values()
    ]
    return Page("Error codes", {"errors": errors}, "Every Kafka error code, with cause and remedy.")


KIND = Kind("errors", "errors.html", "errors.html", make, lambda: ({},))
