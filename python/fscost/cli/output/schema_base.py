"""The models that all schemas share."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Pairs = dict[str, Any]


class Object(BaseModel):
    """An object with these fields alone."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Document(Object):
    """What a command prints, with the name of its schema."""

    schema_: str = Field(alias="schema")
    """Name and version of this schema."""
