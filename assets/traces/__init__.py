"""Pull: where datasets come from, how their raw bytes are kept, what their documents look like."""
