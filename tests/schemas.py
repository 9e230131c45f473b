"""JSON that fscost prints for programs, validated by the schemas that it ships."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from fscost.report import document


@cache
def validator(kind: str) -> Draft202012Validator:
    schema = json.loads(document.schema(kind))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def valid(text: str) -> Any:
    """Return the document after validating it against the schema that it names."""
    value = json.loads(text)
    kinds = {document.name(kind): kind for kind in document.VERSIONS}
    validator(kinds[value["schema"]]).validate(value)
    return value
