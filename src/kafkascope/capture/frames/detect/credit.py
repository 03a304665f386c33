"""Bounds the work of recognizing and resynchronizing streams: bytes of the recording earn credit, and each look at
bytes that can't be split yet spends some. Without credit a look waits for more bytes, so that all looks together stay
linear in the recording."""

# A packet around a piece has at least 54 bytes of headers, and 16 in the file.
PIECE_EARNS = 32
BYTES_EARN = 2  # this many bytes earn one
# The credit at the start, and the most that is saved. A recording that loses packets spends a few thousand on each
# loss, and its bytes earn that again.
FIRST_CREDIT = 1 << 20
MOST_CREDIT = 1 << 24

# The debt that the last looks at a stream may leave: no look follows them.
RESERVE = 1 << 20

# Costs, in tenths of a microsecond, roughly: of a look, a candidate, a chain from there, a frame by the quick decoder
# and by the careful one, and of reading again from a frame on. Then the bytes that cost one step more.
LOOK, CANDIDATE, CHAIN, QUICK, CAREFUL, READ_AGAIN = 96, 12, 40, 64, 640, 400
SCAN_BYTES, QUICK_BYTES, CAREFUL_BYTES = 256, 16, 4


class Credit:
    """`spent` is all that was ever spent: never more than was earned plus FIRST_CREDIT and RESERVE, except for the last
    step."""

    __slots__ = ("_floor", "left", "spent")

    def __init__(self) -> None:
        self.left = FIRST_CREDIT
        self.spent = 0
        self._floor = 0

    def earn(self, pieces: int, size: int) -> None:
        self.left = min(self.left + PIECE_EARNS * pieces + size // BYTES_EARN, MOST_CREDIT)

    def spend(self, steps: int) -> None:
        self.left -= steps
        self.spent += steps

    def may_look(self, *, final: bool) -> bool:
        """Whether a look may begin; the `final` one may use the reserve."""
        self._floor = -RESERVE if final else 0
        return not self.is_spent

    @property
    def is_spent(self) -> bool:
        """A look that has begun ends here."""
        return self.left <= self._floor
