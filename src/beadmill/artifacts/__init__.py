"""One frozen pydantic model per document kind. No I/O."""
