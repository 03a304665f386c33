"""Numbers the words of a job: the arguments that the kernel gets once for many calls."""

(
    CODE,
    OPEN_CODE,  # the program that takes a tag anywhere; the same if there are no tags
    STACK,
    EXTENTS,
    EXTENTS_COUNT,
    COUNTED,  # room for the number of rows in each group
    NOTED_TAGS,  # unknown tags that are noted
    NOTED_ROWS,  # and the rows of their frames
    FIRST_OFFSETS,  # addresses of the offsets of every list and string
    OFFSETS_COUNT,
    TAIL,  # room for the last bytes
    TAIL_SIZE,
    FIELDS,  # of the packed table, see `pack`; 0 if it isn't packed
    FIELDS_COUNT,
    FORM_DATA,  # its metadata, and the places in it of the numbers that are filled in
    FORM_SIZE,
    NODES_AT,
    BUFFERS_AT,
    LENGTH_AT,
    BODY_LENGTH_AT,
    # Set by the kernel itself. Words are read again for each frame, which costs less than keeping them in registers
    # that the work on each field needs.
    FRAMES_BASE,
    FRAME_ENDS,
    FITTING,
    LIMIT,
    TAIL_SHIFT,
    ACTIVE_CODE,
    LAST_FRAME,
) = range(27)
JOB_WORDS = 27
