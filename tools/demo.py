"""`make demo`: the four messages that kafkascope began with, as a reader would want them: page, bytes, decoded back."""

from kafkascope.cli.frame_view import annotated_frame
from kafkascope.cli.identify import identify
from kafkascope.cli.page import show_page
from kafkascope.cli.terminal import heading, paint, width
from kafkascope.codec.json_form import to_json
from kafkascope.schema.examples import example
from kafkascope.schema.layout import layout

MESSAGES = (
    ("ShareGroupDescribeResponse", 1),
    ("StreamsGroupHeartbeatResponse", 0),
    ("ShareFetchRequest", 2),
    ("DescribeQuorumResponse", 1),
)


def main() -> None:
    for name, version in MESSAGES:
        print(paint("─" * min(width(), 100), "dim"))
        found = layout(name, version)
        show_page(found)
        value = example(name, version)
        data, _ = annotated_frame(found, value)
        read = identify(data, f"{name}:{version}", None)
        body = read.body or (read.frame.body if read.frame else None)
        assert body is not None and read.exact
        assert to_json(name, version, body.value) == to_json(name, version, value)
        heading("Decoded back")
        print(f"  {len(data)} bytes decode to the example above and encode to the same bytes again.")
    print()
    print("Next: .venv/bin/kafkascope show ShareFetch, .venv/bin/kafkascope --help")


if __name__ == "__main__":
    main()
