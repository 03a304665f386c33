"""Many frames into Arrow columns. Needs the `columns` extra; without it importing this says so in one line."""

from kafkascope.extras import need_extras

need_extras("kafkascope.columnar", "columns")
