"""Decodes many frames into Arrow columns. Needs the `columns` extra; the error of an import without it names it."""

from kafkascope.extras import need_extras

need_extras("kafkascope.columnar", "columns")
