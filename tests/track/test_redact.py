"""Secrets stay out of what is stored and shown, and what is no secret stays readable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from src.track import redact
from tests.track.making import spec


@pytest.mark.parametrize(
    "shown",
    [
        "http://me:hunter2@host:5000/x refused",
        "postgresql+psycopg2://me:hunter2@db/mlflow",
        "HTTPConnectionPool: 'https://me:hunter2@h'",
        "https://host/?key=hunter2",
        "x --token=hunter2 y",
        "token=hunter2",
        "http://me:p@hunter2@host/",
        "http://hunter2@host/",
        "api_token=hunter2",
        "API_TOKEN: hunter2",
        "password: hunter2",
        "{'password': 'hunter2', 'x': 1}",
        '{"aws_secret_access_key": "hunter2"}',
        "https://host/x?token=hunter2&y=1",
        "Authorization: Bearer hunter2",
        "mytool --password hunter2 go",
        "mytool --api-key=hunter2",
        "device.env.HF_TOKEN='hunter2 and more'",
        "MLFLOW_TRACKING_PASSWORD=hunter2",
        "apikey=hunter2",
        "dbPassword=hunter2",
    ],
)
def test_no_secret_is_left_in_text(shown: str) -> None:
    assert "hunter2" not in redact.text(shown)


@pytest.mark.parametrize(
    "shown",
    [
        "aten::mul took 3 us",
        "KeyError: 'aten::mul'",
        "profiler.modez: unknown key: did you mean profiler.modes?",
        "key_averages() gave no device time",
        "max_tokens=128",
        "http://host:5000/#/experiments/1 at a@b.org",
        "Unexpected token: }",
        "Torch-Compiled Region: 0/0",
        "monkey=3 keyboard=4",
        "sqlite:////home/me/mlflow.db",
        "AssertionError: key=value",
    ],
)
def test_ordinary_text_is_left_alone(shown: str) -> None:
    assert redact.text(shown) == shown


@pytest.mark.parametrize(
    "key",
    "token api_token HF_TOKEN secret AWS_SECRET_ACCESS_KEY password db.passwd apiKey APIKEY key "
    "ssh_key credentials Authorization accessToken".split(),
)
def test_a_key_that_names_a_secret_is_known(key: str) -> None:
    assert redact.is_secret(key)
    assert redact.override(f"+{key}=hunter2") == f"+{key}=***"


@pytest.mark.parametrize(
    "key", ["monkey", "keyboard", "tokenizer", "author", "passes", "compile", "bypass", "turkey"]
)
def test_a_key_that_only_sounds_like_a_secret_is_left(key: str) -> None:
    assert not redact.is_secret(key)
    assert redact.override(f"{key}=plain") == f"{key}=plain"


def test_a_whole_specification_holds_no_secret(tmp_path: Path) -> None:
    asked = spec(
        tmp_path,
        env={"MY_TOKEN": "hunter2secret", "NEURON_CC_FLAGS": "--x hunter2secret"},
        tracking_uri="http://me:hunter2pass@host",
        overrides=("device.env.MY_TOKEN=hunter2secret", "tracking.uri=http://me:hunter2pass@host"),
        description="with hunter2secret",
        tags={"note": "http://me:hunter2pass@host"},
    )
    hidden = json.dumps(redact.tree(asked.to_json()))
    assert "hunter2" not in hidden
    assert "NEURON_CC_FLAGS" in hidden
    assert "http://host" in hidden


def test_numbers_and_switches_are_no_secrets() -> None:
    data = {"max_tokens": 128, "tokens": "64", "use_auth": True, "key": None}
    assert redact.tree(data) == data


@pytest.mark.parametrize("long", ["x" * 99_999, "a-" * 20_000, "a.key" * 8_000, "://" * 20_000])
def test_long_text_is_searched_in_a_time_that_grows_with_its_length(long: str) -> None:
    assert redact.text(long) == long
