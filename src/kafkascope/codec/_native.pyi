from typing import Any

from kafkascope.codec.result import Decoded

class Decoder:
    def __init__(
        self,
        fields: tuple[tuple[Any, ...], ...],
        flexible: bool,
        result: type[Decoded],
        constants: tuple[Any, ...],
        bounds: tuple[int, int, int, int],
        /,
    ) -> None: ...
    def decode(self, data: bytes, position: int, /) -> Decoded | None: ...
