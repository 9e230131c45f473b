"""Base classes of the models of JSON documents."""

from pydantic import BaseModel, ConfigDict, Field


class Object(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Document(Object):
    schema_: str = Field(alias="schema")
    """Name and version of this schema."""
