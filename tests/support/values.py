"""Values to test with: the boundary cases and random ones of the test vectors."""

from kafkascope.schema.layouts.samples import THEMES
from kafkascope.schema.layouts.samples import sample as random_value

__all__ = ["THEMES", "random_value"]
