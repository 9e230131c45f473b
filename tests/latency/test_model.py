"""The section [latency]: crates/latency validates it, and its error messages reach the user."""

import pytest

from fscost import devices, latency
from fscost.errors import InputError


def read(text: str) -> latency.Model:
    return latency.of_file(devices.parse("d", "d.toml", text))


def test_a_wrong_field_is_refused_by_name_with_a_remedy() -> None:
    with pytest.raises(InputError) as error:
        read('[latency]\nmodel = "constant"\nread_us = -1')
    assert error.value.what == "d.toml: latency.read_us: is -1"
    assert error.value.remedy.startswith("give a number from 0 to ")


def test_every_given_value_is_a_parameter_of_its_model() -> None:
    for each in devices.catalogue():
        if "latency" not in each.sections:
            continue
        model = latency.of_file(each)
        known = {each.name for each in latency.parameters(model.kind)}
        assert model.values.keys() - known == {"model"}
        assert len(known) > 4


def test_required_parameters_have_no_default() -> None:
    required = [each.name for each in latency.parameters("hard-disk") if each.default is None]
    assert required[:2] == ["capacity_bytes", "rpm"]
    assert latency.parameters("tape") == ()
