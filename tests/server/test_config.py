"""Settings: which source wins, and what stops the start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ByteSize

from jobline_server.config import ConfigurationError, Settings, load_settings

FIELDS = Settings.model_fields


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine plays a part."""
    for name in list(os.environ):
        if name.startswith("JOBLINE_"):
            monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A settings file."""
    path = tmp_path / "jobline.toml"
    path.write_text('data = "/from/file"\nshards = 4\nmax_payload_bytes = "1MiB"\n')
    return path


def test_flags_win_over_the_environment_over_the_file_over_defaults(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each source sets one value that the stronger ones leave unset."""
    monkeypatch.setenv("JOBLINE_SHARDS", "2")
    monkeypatch.setenv("JOBLINE_DATA", "/from/environment")

    settings = load_settings({"data": "/from/flag"}, file)

    assert settings.data == Path("/from/flag")
    assert settings.shards == 2
    assert settings.max_payload_bytes == 1 << 20
    assert settings.drain_seconds == 30


@pytest.mark.parametrize("level", ["INFO", "Warning", "debug"])
def test_a_log_level_may_be_in_any_case(level: str, tmp_path: Path) -> None:
    """Python and most loggers write it in upper case."""
    file = tmp_path / "jobline.toml"
    file.write_text(f'log_level = "{level}"')
    assert load_settings({"log_level": level}).log_level == level.lower()
    assert load_settings(file=file).log_level == level.lower()


def test_the_environment_may_name_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JOBLINE_CONFIG."""
    monkeypatch.setenv("JOBLINE_CONFIG", str(file))

    assert load_settings().shards == 4


def test_a_flag_that_was_not_given_says_nothing(file: Path) -> None:
    """None is not a value."""
    assert load_settings({"shards": None}, file).shards == 4


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"datta": "x"}, "datta: no such setting"),
        ({"shards": -1}, "shards:"),
        ({"shards": 1_025}, "shards:"),
        ({"max_payload_bytes": "1B"}, "max_payload_bytes:"),
        ({"max_payload_bytes": "many"}, "max_payload_bytes:"),
        ({"listen": "7070"}, "listen: must be HOST:PORT"),
        ({"listen": "host:70700"}, "listen: must be HOST:PORT"),
        ({"http": "host:port"}, "http: must be HOST:PORT"),
        ({"listen": ""}, "listen: gRPC needs an address"),
        ({"transport": "tls"}, "transport:"),
        ({"drain_seconds": "nan"}, "drain_seconds:"),
        ({"drain_seconds": -1}, "drain_seconds:"),
        ({"heartbeat_seconds": 0}, "heartbeat_seconds:"),
        ({"uvloop": "perhaps"}, "uvloop:"),
        ({"default_ack_level": "none"}, "default_ack_level:"),
        ({"listen": "::1:7075"}, "listen: must be HOST:PORT, an IPv6 address in brackets"),
        ({"http": "[::1:7075"}, "http: must be HOST:PORT, an IPv6 address in brackets"),
        ({"http": "[localhost]:1"}, "http: must be HOST:PORT, and [localhost] is no IPv6 address"),
        ({"data": ""}, "data: must name a directory"),
        ({"data": " "}, "data: must name a directory"),
        ({"log_level": "loud"}, "log_level:"),
        ({"worker_limit_seconds": 0}, "worker_limit_seconds:"),
        ({"worker_limit_seconds": 34_560_001}, "worker_limit_seconds:"),
    ],
)
def test_what_cannot_be_applied_stops_the_start(flags: dict[str, object], said: str) -> None:
    """The error names the setting and what is wrong with it (G22)."""
    with pytest.raises(ConfigurationError) as caught:
        load_settings(flags)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("shards", "many", "must be a whole number, 0 … 1,024"),
        ("shards", "1025", "must be a whole number, 0 … 1,024"),
        ("max_waiting_jobs", "0", "must be a whole number, 1 … 1,000,000,000"),
        ("heartbeat_seconds", "soon", "must be a number, 0.05 … 60"),
        ("max_payload_bytes", "many", "must be a size such as 64MiB, 1 KiB … 512 MiB"),
        ("max_waiting_bytes", "1", "must be a size such as 64MiB, 1 MiB … 1,024 GiB"),
        ("log_format", "xml", "must be one of auto, json, console"),
        ("uvloop", "perhaps", "must be true or false"),
        ("listen", "7070", "must be HOST:PORT, the port 0 to 65535"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_allowed_and_where_it_stands(
    name: str, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial D11: in one line, of flag, variable and file alike."""
    file = tmp_path / "jobline.toml"
    file.write_text(f'{name} = "{text}"\n')
    flag, variable = f"--{name.replace('_', '-')}", f"JOBLINE_{name.upper()}"

    with pytest.raises(ConfigurationError) as of_file:
        load_settings({}, file)
    monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigurationError) as of_variable:
        load_settings({}, file)
    with pytest.raises(ConfigurationError) as of_flag:
        load_settings({name: text}, file)

    assert str(of_file.value) == f'{name}: {said} (given: {name} = "{text}" in {file})'
    assert str(of_variable.value) == f"{name}: {said} (given: {variable}={text})"
    assert str(of_flag.value) == f"{name}: {said} (given: {flag} {text})"


@pytest.mark.parametrize("listen", ["[::1]:7075", "[::]:0", "localhost:65535", "0.0.0.0:1"])
def test_addresses_that_mean_one_thing_are_taken(listen: str) -> None:
    """Trial D3: an IPv6 address stands in brackets."""
    assert load_settings({"listen": listen, "http": listen}).listen == listen


@pytest.mark.parametrize(
    "name", ["JOBLINE_LISTENN", "JOBLINE_SERVERS", "JOBLINE_PORT", "JOBLINE_SERVICE"]
)
def test_a_misspelt_variable_stops_the_start(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be ignored in silence otherwise."""
    monkeypatch.setenv(name, "x")

    with pytest.raises(ConfigurationError, match=name):
        load_settings()


def test_the_name_that_was_meant_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A letter too few is found faster with the right name beside it."""
    file = tmp_path / "jobline.toml"
    file.write_text("shard = 3")
    with pytest.raises(ConfigurationError, match=r"^shard: no such .*did you mean shards\?"):
        load_settings({}, file)

    monkeypatch.setenv("JOBLINE_SHARD", "3")
    with pytest.raises(ConfigurationError, match=r"JOBLINE_SHARD: .*did you mean JOBLINE_SHARDS"):
        load_settings()


def test_a_variable_like_no_setting_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """That all of them begin alike makes nothing near."""
    monkeypatch.setenv("JOBLINE_SERVICE_HOSTS", "x")
    with pytest.raises(ConfigurationError, match="JOBLINE_SERVICE_HOSTS: no such setting; see"):
        load_settings()


@pytest.mark.parametrize("service", ["JOBLINE", "JOBLINE_SERVER", "JOBLINE_HTTP"])
def test_variables_of_kubernetes_are_left_alone(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial D2: every pod beside a Service called `jobline` has these."""
    port = f"{service}_PORT_7070_TCP"
    for name, value in {
        f"{service}_SERVICE_HOST": "10.0.0.11",
        f"{service}_SERVICE_PORT": "7070",
        f"{service}_SERVICE_PORT_GRPC_WEB": "7070",
        f"{service}_PORT": "tcp://10.0.0.11:7070",
        port: "tcp://10.0.0.11:7070",
        f"{port}_PROTO": "tcp",
        f"{port}_PORT": "7070",
        f"{port}_ADDR": "10.0.0.11",
    }.items():
        monkeypatch.setenv(name, value)

    assert load_settings().listen == "127.0.0.1:7070"


def test_an_empty_path_of_a_socket_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an empty address is."""
    monkeypatch.setenv("JOBLINE_UNIX_SOCKET", "")

    assert load_settings().unix_socket is None


@pytest.mark.parametrize(
    "name",
    [
        "JOBLINE_SERVER",
        "JOBLINE_TOKEN",
        "JOBLINE_TLS",
        "JOBLINE_TLS_CA",
        "JOBLINE_CLIENT_CERTIFICATE",
        "JOBLINE_CLIENT_KEY",
        "JOBLINE_JOB_ID",
        "JOBLINE_COMMAND",
        "JOBLINE_PIPELINE_TABLES",
    ],
)
def test_variables_of_the_client_are_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run on one machine."""
    monkeypatch.setenv(name, "x")

    assert load_settings().shards == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [("colour = 1", "colour: no such setting"), ("shards =", r"bad\.toml cannot be read: ")],
)
def test_a_file_that_cannot_be_applied_stops_the_start(
    tmp_path: Path, content: str, said: str
) -> None:
    """Unknown names and broken files alike."""
    path = tmp_path / "bad.toml"
    path.write_text(content)

    with pytest.raises(ConfigurationError, match=said):
        load_settings({}, path)


def test_a_file_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    """It was asked for."""
    with pytest.raises(ConfigurationError, match="no settings file"):
        load_settings({}, tmp_path / "nothing.toml")


@pytest.mark.parametrize("name", list(FIELDS))
def test_every_setting_is_described_and_has_a_default(name: str) -> None:
    """`--help` lists all settings."""
    field = FIELDS[name]

    assert field.description
    assert field.description.endswith(".")
    assert not field.is_required()


def test_both_addresses_are_served() -> None:
    """A socket beside the port, or alone."""
    both = load_settings({"unix_socket": "/run/j.sock"})
    alone = load_settings({"unix_socket": "/run/j.sock", "listen": ""})

    assert both.listen_addresses == ["127.0.0.1:7070", "unix:/run/j.sock"]
    assert alone.listen_addresses == ["unix:/run/j.sock"]


RANGES = {
    name: {type(bound).__name__: bound for bound in field.metadata}
    for name, field in FIELDS.items()
    if any(hasattr(bound, "ge") for bound in field.metadata)
}


def written(bound: float) -> set[str]:
    """How a number may stand in a description."""
    sizes = {f"{bound / (1 << shift):g} {unit}" for shift, unit in SIZES.items()}
    return {f"{bound:,}", f"{bound:g}", *sizes}


SIZES = {10: "KiB", 20: "MiB", 30: "GiB", 40: "TiB"}


@pytest.mark.parametrize("name", RANGES)
def test_a_setting_says_its_range_and_refuses_what_is_outside(name: str) -> None:
    """Trial D11: both bounds stand in its description, and hold."""
    least, most = RANGES[name]["Ge"].ge, RANGES[name]["Le"].le
    said = str(FIELDS[name].description)

    # The least number of shards is 1; 0 leaves it to the store.
    shown = written(1 if name == "shards" else least)
    assert any(f"{low} … {high}" in said for low in shown for high in written(most)), said
    for outside in (least - 1, most + 1):
        with pytest.raises(ConfigurationError, match=f"{name}:"):
            load_settings({name: outside})


def test_every_number_has_a_range() -> None:
    """Trial D11: a setting that is a number has a least and a most."""
    numbers = {name for name, field in FIELDS.items() if field.annotation in (int, float, ByteSize)}

    assert numbers == set(RANGES)
