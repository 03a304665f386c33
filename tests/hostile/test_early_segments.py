"""Finding the place of an early segment takes a bounded number of steps, whatever order the segments come in."""

from pathlib import Path

import numpy as np
import pytest

from kafkascope.capture.flow import Flows
from kafkascope.capture.reassemble import LOOKS_GIVEN_BACK, MOST_LOOKED_AT
from kafkascope.capture.segments import SegmentReader
from kafkascope.capture.stream_table import (
    END,
    EXPRESS,
    FOLLOWING,
    HEAD,
    HELD_COUNT,
    LOCAL,
    OFFSET,
    WALKED,
    Tables,
)
from kafkascope.capture.tcp import Reassembler
from tests.hostile.early_segments import ORDERS

SEGMENTS = 30_000
# Along the express lane 128 steps and from there 64, for the last of 8,192; a walk from the head would take thousands.
MOST_STEPS = 400
