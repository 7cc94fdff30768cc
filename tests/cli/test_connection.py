"""How a command reaches its server, and what it says of a token or of TLS that is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from jobline.cli.exit_codes import Exit
from tests.cli.conftest import Ran
from tests.cli.guarded import Guarded, guarded_server, run
from tests.server.access import key


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_server(tmp_path_factory.mktemp("guarded")) as found:
        yield found


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One that asks clients for a certificate, too."""
    with guarded_server(tmp_path_factory.mktemp("mutual"), mutual=True) as found:
        yield found


def is_refused(ended: Ran, code: Exit, *said: str) -> None:
    """Asserts how a command ended: an error of one line, and one that says what to do."""
    assert ended.code == code, ended.err
    lines = ended.err.splitlines()
    assert 1 <= len(lines) <= 2, lines
    assert lines[0].startswith("error: ")
    for one in said:
        assert one in ended.err, ended.err


def test_all_from_the_environment(mutual: Guarded) -> None:
    variables = {
        "JOBLINE_SERVER": mutual.address,
        "JOBLINE_TOKEN": key("read") + "\n",
        "JOBLINE_TLS_CA": str(mutual.files.client_ca),
        "JOBLINE_CLIENT_CERTIFICATE": str(mutual.files.certificate),
        "JOBLINE_CLIENT_KEY": str(mutual.files.key),
    }
    done = run("stats", **variables)
    assert done.code == Exit.OK, done.err
    plain = run("stats", **{**variables, "JOBLINE_TLS_CA": "", "JOBLINE_TLS": "perhaps"})
    assert plain.code == Exit.USAGE
    assert "JOBLINE_TLS" in plain.err


def test_the_environment_says_no_whatever_files_it_has(
    served: dict[str, str], mutual: Guarded
) -> None:
    """An option of the command line says otherwise."""
    variables = {
        "JOBLINE_SERVER": served["grpc"],
        "JOBLINE_TLS": "0",
        "JOBLINE_TLS_CA": str(mutual.files.client_ca),
        "JOBLINE_CLIENT_CERTIFICATE": str(mutual.files.certificate),
    }
    done = run("stats", **variables)
    assert done.code == Exit.OK, done.err
    is_refused(run("stats", "--tls", **variables), Exit.USAGE, "--client-certificate needs")
    given = ("--tls-ca", "other.pem")
    is_refused(run("stats", *given, **variables), Exit.USAGE, "--client-certificate needs")


def test_a_file_goes_before_the_variable(server: Guarded) -> None:
    done = run("stats", *server.flags("read"), JOBLINE_TOKEN="jl_other")
    assert done.code == Exit.OK, done.err


def test_no_token(server: Guarded) -> None:
    ended = run("stats", *server.flags())
    is_refused(ended, Exit.REFUSED, "asks who calls", "--token-file FILE, or JOBLINE_TOKEN")


def test_a_token_that_nobody_has(server: Guarded, tmp_path: Path) -> None:
    """The message says where it came from, and not what it is."""
    (tmp_path / "token").write_text(key("nobody"))
    ended = run("stats", *server.flags(), "--token-file", tmp_path / "token")
    is_refused(ended, Exit.REFUSED, f"the token of --token-file {tmp_path}/token")
    assert key("nobody") not in ended.err
    ended = run("stats", *server.flags(), JOBLINE_TOKEN=key("nobody"))
    is_refused(ended, Exit.REFUSED, "the token of JOBLINE_TOKEN")


def test_a_token_without_the_right(server: Guarded) -> None:
    ended = run("queue", "pause", "mail", *server.flags("read"))
    said = ("key:read has no role with the verb manage for queue mail", "--token-file")
    is_refused(ended, Exit.REFUSED, *said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"jl_secret\nname = 'shop'\n", "has 2 lines, and a token is one"),
        (b"two words", "one word of printable ASCII"),
        ("schl\u00fcssel".encode(), "one word of printable ASCII"),
        (bytes(range(9)), "one word of printable ASCII"),
    ],
)
def test_what_is_no_file_with_a_token(tmp_path: Path, content: bytes, said: str) -> None:
    """Nothing is sent; and what is in the file is not shown."""
    (tmp_path / "token").write_bytes(content)
    ended = run("stats", "--server", "127.0.0.1:1", "--token-file", tmp_path / "token")
    is_refused(ended, Exit.USAGE, f"--token-file {tmp_path}/token", said)
    assert "secret" not in ended.err


def test_token_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none", "no such file"), (tmp_path, "is a directory")):
        ended = run("stats", "--server", "127.0.0.1:1", "--token-file", path)
        is_refused(ended, Exit.USAGE, f"--token-file {path}: {why}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_token_file_without_permission(tmp_path: Path) -> None:
    (tmp_path / "token").touch(0o000)
    ended = run("stats", "--server", "127.0.0.1:1", "--token-file", tmp_path / "token")
    is_refused(ended, Exit.USAGE, "permission denied")


def test_a_variable_with_several_lines() -> None:
    ended = run("stats", "--server", "127.0.0.1:1", JOBLINE_TOKEN="a\nb")
    is_refused(ended, Exit.USAGE, "JOBLINE_TOKEN has 2 lines")


def test_a_token_stays_on_this_host_without_tls(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("jl_secret")
    ended = run("stats", "--server", "far.example:7070", "--token-file", tmp_path / "token")
    is_refused(ended, Exit.USAGE, "far.example:7070 is another host", "add --tls")


def test_an_authority_that_did_not_issue_it(server: Guarded, tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    given = ["--server", server.address, "--token-file", server.token_file("read")]
    for flags in (["--tls-ca", tmp_path / "other.pem"], ["--tls"]):
        ended = run("stats", *given, *flags)
        said = "its certificate is not of an authority that is trusted here"
        is_refused(ended, Exit.UNREACHABLE, said, "with --tls-ca FILE")


def test_another_name(server: Guarded) -> None:
    port = server.address.rpartition(":")[2]
    given = [*server.flags("read"), "--server", f"127.0.0.1:{port}"]
    is_refused(run("stats", *given), Exit.UNREACHABLE, "is for another name", "as its certificate")


def test_the_http_port_of_a_server_with_tls(server: Guarded) -> None:
    """It speaks TLS, and no gRPC."""
    address = server.http.replace("127.0.0.1", "localhost")
    ended = run("stats", "--server", address, "--tls-ca", str(server.files.client_ca))
    is_refused(ended, Exit.UNREACHABLE, "it does not speak gRPC; is it the HTTP port?")
    assert "No server answers" not in ended.err


def test_plaintext_to_a_server_with_tls(server: Guarded) -> None:
    ended = run("stats", *server.flags("read", tls=False))
    is_refused(ended, Exit.UNREACHABLE, "Does the server speak TLS? Add --tls")


def test_tls_to_a_server_without(served: dict[str, str], server: Guarded) -> None:
    given = ["--server", served["grpc"]]
    for flags in (["--tls"], ["--tls-ca", server.files.client_ca], server.client_flags()):
        ended = run("stats", *given, *flags)
        is_refused(ended, Exit.UNREACHABLE, "does the server speak TLS?", "leave out --tls")


def test_a_server_that_asks_for_a_certificate(mutual: Guarded, tmp_path: Path) -> None:
    assert run("stats", *mutual.flags("read"), *mutual.client_flags()).code == Exit.OK
    ended = run("stats", *mutual.flags("read"))
    is_refused(ended, Exit.UNREACHABLE, "Give --client-certificate FILE and --client-key FILE")
    other = trustme.CA().issue_cert("client")
    other.cert_chain_pems[0].write_to_path(tmp_path / "c.pem")
    other.private_key_pem.write_to_path(tmp_path / "c.key")
    shown = ["--client-certificate", tmp_path / "c.pem", "--client-key", tmp_path / "c.key"]
    ended = run("stats", *mutual.flags("read"), *shown)
    is_refused(ended, Exit.UNREACHABLE, "Does the server take this certificate")


def test_a_certificate_that_the_server_does_not_name(tmp_path: Path) -> None:
    """Nobody gave a token, so nothing is said of one; the certificate is named by its source."""
    with guarded_server(tmp_path, mutual=True, certified="worker.example") as server:
        advice = (
            "It knows no name in {}: add one of its names to [[certificates]] in the server's "
            "file, or give a token."
        )
        ended = run("stats", *server.flags(), *server.client_flags())
        source = f"--client-certificate {server.files.certificate}"
        is_refused(ended, Exit.REFUSED, advice.format(source))
        variables = {
            "JOBLINE_CLIENT_CERTIFICATE": str(server.files.certificate),
            "JOBLINE_CLIENT_KEY": str(server.files.key),
        }
        ended = run("stats", *server.flags(), **variables)
        source = f"JOBLINE_CLIENT_CERTIFICATE {server.files.certificate}"
        is_refused(ended, Exit.REFUSED, advice.format(source))
        ended = run("stats", *server.flags(), *server.client_flags(), JOBLINE_TOKEN="jl_wrong")
        is_refused(ended, Exit.REFUSED, "It refused the token of JOBLINE_TOKEN")


def test_files_of_tls_that_are_none(server: Guarded, tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear reader,")
    files, letter = server.files, tmp_path / "letter"
    certificate, its_key = "--client-certificate", "--client-key"
    for flags, said in (
        (["--tls-ca", letter], f"--tls-ca {letter} holds no certificates"),
        (["--tls-ca", tmp_path / "none"], "none: no such file"),
        ([certificate, files.certificate], "--client-certificate needs --client-key"),
        ([its_key, files.key], "--client-key needs --client-certificate"),
        ([certificate, letter, its_key, files.key], "are no pair"),
        ([certificate, files.client_ca, its_key, files.key], "are no pair"),
        ([certificate, files.certificate, its_key, tmp_path / "none"], "none: no such file"),
    ):
        is_refused(run("stats", "--server", "127.0.0.1:1", *flags), Exit.USAGE, said)


def test_the_doctor_says_who_may_call(server: Guarded) -> None:
    done = run("doctor", "--read-only", *server.flags("read"))
    assert done.code == Exit.OK, done.out
    assert "callers need a token or a certificate; reached by TLS" in done.out


def test_a_worker_reads_its_token_again(server: Guarded, tmp_path: Path) -> None:
    """Its file is replaced while it works: each stream asks for the token of now."""
    from jobline.cli.connection import Connection  # noqa: PLC0415  # for this test

    (tmp_path / "token").write_text("jl_first\n")
    given = Connection(server.address, tmp_path / "token", tls_ca=server.files.client_ca)
    token = given.of_worker()["token"]
    assert token() == "jl_first"
    (tmp_path / "token").write_text("jl_second\n")
    assert token() == "jl_second"
    assert given.of_client()["token"] == "jl_second"
