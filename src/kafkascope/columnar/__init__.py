"""Decodes many frames into Arrow columns. Needs the `columns` extra; without it the import raises an error that names
it."""

from kafkascope.extras import need_extras

need_extras("kafkascope.columnar", "columns")
