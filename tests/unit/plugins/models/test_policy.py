"""What an agent fetches for strangers: schemes, sizes, folders, and no way into a private network."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from prony.agent.settings import model_policy
from prony.errors import InputError, TransportError
from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.model.result import Result
from prony.plugins.models.addresses import Address, is_public, resolve_host
from prony.plugins.models.file import FileSource
from prony.plugins.models.https import HttpsSource
from prony.ports.models import AGENT_POLICY, FetchOptions, ModelFiles, ModelPolicy, policy_of
from prony.runner.models import fetch as fetch_model
from servers.needs import lack
from servers.web_server import Page, WebServer, serving

GUARDED = ModelPolicy(private=False)
CONTENT = bytes(range(256)) * 1000
# As getaddrinfo answers for one address.
Answer = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


@pytest.fixture
def web() -> Iterator[WebServer]:
    with serving() as server:
        yield server


def fetch(
    url: str, cache: Path, policy: ModelPolicy = GUARDED, may_reach: Callable[[Address], bool] = is_public
) -> ModelFiles:
    options = FetchOptions(cache=cache, formats=(), timeout_s=60.0, policy=policy)
    return HttpsSource(pause=lambda _: None, may_reach=may_reach).fetch(url, options, lambda *_: None)


def refusal(url: str, cache: Path, policy: ModelPolicy = GUARDED) -> InputError:
    """Return the error with which a fetch is refused."""
    with pytest.raises(InputError) as caught:
        fetch(url, cache, policy)
    assert caught.value.code == "model_refused"
    assert "prony agent start --model-" in caught.value.hint
    return caught.value


def answer(address: str, port: int) -> Answer:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return (family, socket.SOCK_STREAM, 6, "", (address, port))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """What the name service answers for each name: one list of addresses a question, the last one for ever after."""
    known: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> list[Any]:
        if host not in known:
            return real(host, port, *args, **kwargs)
        addresses = known[host].pop(0) if len(known[host]) > 1 else known[host][0]
        return [answer(address, port) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


# Which addresses


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "192.0.2.1",
        "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16",
        "::", "::1", "fe80::1", "fe80::1%1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1",
        "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "2002:7f00:1::1",
        "2001:0:7f00:1::1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8", "100::1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_the_publics_is_known_for_one(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "172.32.0.1", "2606:4700::1111", "64:ff9b::8.8.8.8"])
def test_a_public_address_is_known_for_one(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("host", ["127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1"])
def test_an_address_in_disguise_is_seen_through(host: str) -> None:
    try:
        found = resolve_host(host, 443)
    except OSError:
        pytest.skip("this system does not take it for an address")
    assert not any(map(is_public, found))


# The guard


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_this_machine_itself_is_not_asked(web: WebServer, tmp_path: Path, host: str) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    refusal(f"http://{host}:{web.server_address[1]}/m.tflite", tmp_path)
    refusal(f"https://{host}:{web.server_address[1]}/m.tflite", tmp_path)
    assert web.log == []


@pytest.mark.parametrize("host", ["169.254.169.254", "10.0.0.1", "[fd00:ec2::254]", "[::ffff:10.0.0.1]", "0.0.0.0"])
def test_a_private_network_is_not_asked(tmp_path: Path, host: str) -> None:
    error = refusal(f"https://{host}/latest/m.tflite", tmp_path)
    assert "--model-private" in error.hint


def test_a_name_that_leads_into_a_private_network_is_not_asked(
    tmp_path: Path, names: dict[str, list[list[str]]]
) -> None:
    names["models.example"] = [["10.11.12.13"]]
    error = refusal("https://models.example/m.tflite", tmp_path)
    assert "10.11.12.13" not in error.message + error.hint


def test_one_private_address_among_public_ones_is_enough(tmp_path: Path, names: dict[str, list[list[str]]]) -> None:
    names["models.example"] = [["8.8.8.8", "192.168.0.1"]]
    assert "models.example" in refusal("https://models.example/m.tflite", tmp_path).message


def test_without_the_guard_this_machine_is_asked_as_ever(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    assert fetch(web.url("/m.tflite"), tmp_path, ModelPolicy()).path.read_bytes() == CONTENT


# By plain http

PLAIN = ModelPolicy(private_plain=True)


def test_plain_http_into_a_private_network_is_refused_unless_its_owner_allows_it(
    web: WebServer, tmp_path: Path, names: dict[str, list[list[str]]]
) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    names["models.lan"] = [["127.0.0.1"]]
    url = f"http://models.lan:{web.server_address[1]}/m.tflite"
    for policy in (ModelPolicy(), AGENT_POLICY):
        with pytest.raises(InputError) as caught:
            fetch(url, tmp_path, policy)
        assert caught.value.code == "insecure_url"
        assert "prony agent start --model-private plain" in caught.value.hint
    assert web.log == []
    assert fetch(url, tmp_path, PLAIN).path.read_bytes() == CONTENT
    assert web.log[0][1]["Host"] == f"models.lan:{web.server_address[1]}"


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "169.254.169.254", "fd00:ec2::254", "0.0.0.0"])
def test_plain_http_stays_refused_outside_of_an_own_network(
    tmp_path: Path, names: dict[str, list[list[str]]], address: str
) -> None:
    names["models.example"] = [[address]]
    with pytest.raises(InputError) as caught:
        fetch("http://models.example/m.tflite", tmp_path, PLAIN)
    assert caught.value.code == "insecure_url"


def test_a_redirect_out_of_the_own_network_by_plain_http_is_not_followed(
    web: WebServer, tmp_path: Path, names: dict[str, list[list[str]]]
) -> None:
    names["models.lan"], names["models.example"] = [["127.0.0.1"]], [["8.8.8.8"]]
    web.pages["/m.tflite"] = Page(location="http://models.example/m.tflite")
    with pytest.raises(InputError) as caught:
        fetch(f"http://models.lan:{web.server_address[1]}/m.tflite", tmp_path, PLAIN)
    assert caught.value.code == "insecure_url"
    assert "models.example" in caught.value.message


@pytest.mark.parametrize("word", ["refuse", "allow", "plain"])
def test_the_word_for_private_networks_goes_to_the_runner_and_back(word: str) -> None:
    policy = model_policy({}, private=word)
    assert policy.variables()["PRONY_MODEL_PRIVATE"] == word
    assert policy_of(policy.variables()) == policy
    assert model_policy({"PRONY_MODEL_PRIVATE": word}) == policy


def not_second(address: Address) -> bool:
    """Stands in for `is_public` where the server is on this machine: 127.0.0.2 plays the private network."""
    return address != ip_address("127.0.0.2")


def test_under_the_guard_a_model_still_comes_with_its_redirects(web: WebServer, tmp_path: Path) -> None:
    port = web.server_address[1]
    web.pages["/m.tflite"] = Page(location="/deep/r1")
    web.pages["/deep/r1"] = Page(location=f"http://localhost:{port}/deep/final")
    web.pages["/deep/final"] = Page(CONTENT, cuts=[1000])
    found = fetch(f"http://localhost:{port}/m.tflite", tmp_path, may_reach=not_second)
    assert found.path.read_bytes() == CONTENT
    assert {headers["Host"] for _, headers in web.log} == {f"localhost:{port}"}
    assert [path for path, _ in web.log[:3]] == ["/m.tflite", "/deep/r1", "/deep/final"]


def test_a_redirect_into_a_private_network_is_not_followed(web: WebServer, tmp_path: Path) -> None:
    port = web.server_address[1]
    web.pages["/m.tflite"] = Page(location=f"http://127.0.0.2:{port}/secret")
    web.pages["/secret"] = Page(b"secret")
    with pytest.raises(InputError) as caught:
        fetch(f"http://127.0.0.1:{port}/m.tflite", tmp_path, may_reach=not_second)
    assert caught.value.code == "model_refused"
    assert [path for path, _ in web.log] == ["/m.tflite"]


def test_a_name_that_changes_its_meaning_after_the_check_is_not_asked_again(
    web: WebServer, tmp_path: Path, names: dict[str, list[list[str]]]
) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    names["localhost"] = [["127.0.0.1"], ["127.0.0.2"]]
    url = f"http://localhost:{web.server_address[1]}/m.tflite"
    assert fetch(url, tmp_path, may_reach=not_second).path.read_bytes() == CONTENT
    assert names["localhost"] == [["127.0.0.2"]]


def test_an_address_that_does_not_answer_gives_way_to_the_next(
    web: WebServer, tmp_path: Path, names: dict[str, list[list[str]]]
) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    names["localhost"] = [["::1", "127.0.0.1"]]
    url = f"http://localhost:{web.server_address[1]}/m.tflite"
    assert fetch(url, tmp_path, may_reach=not_second).path.read_bytes() == CONTENT


def test_no_proxy_is_asked_to_go_there_in_our_place(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    with serving() as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url(""))
            monkeypatch.setenv(name.lower(), proxy.url(""))
        refusal("https://10.0.0.1/m.tflite", tmp_path)
        found = fetch(f"http://localhost:{web.server_address[1]}/m.tflite", tmp_path, may_reach=not_second)
        assert found.path.read_bytes() == CONTENT
        assert proxy.log == []


def test_a_host_without_an_address_is_a_transport_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(TransportError, match=r"no connection to models\.example"):
        fetch("https://models.example/m.tflite", tmp_path)


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate of models.example with its key, in which this process trusts."""
    openssl = shutil.which("openssl")
    if openssl is None:
        lack("openssl", "it makes the certificate")
    path = tmp_path / "certificate.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=models.example",
         "-addext", "subjectAltName=DNS:models.example", "-keyout", str(path), "-out", str(tmp_path / "only.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + (tmp_path / "only.pem").read_text())
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "only.pem"))
    return path


@pytest.mark.parametrize("host", ["models.example", "other.example"])
def test_the_certificate_is_held_against_the_name_and_not_the_address(
    web: WebServer, tmp_path: Path, names: dict[str, list[list[str]]], certificate: Path, host: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    web.socket = context.wrap_socket(web.socket, server_side=True)
    web.pages["/m.tflite"] = Page(CONTENT)
    names[host] = [["127.0.0.1"]]
    url = f"https://{host}:{web.server_address[1]}/m.tflite"
    if host == "models.example":
        assert fetch(url, tmp_path / "cache", may_reach=not_second).path.read_bytes() == CONTENT
        assert web.log[0][1]["Host"] == f"{host}:{web.server_address[1]}"
    else:
        with pytest.raises(TransportError, match=r"(?i)certificate"):
            fetch(url, tmp_path / "cache", may_reach=not_second)
        assert web.log == []


# Sizes


@pytest.mark.parametrize("says_length", [True, False])
def test_a_model_over_the_allowed_size_is_refused(web: WebServer, tmp_path: Path, says_length: bool) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, says_length=says_length)
    policy = ModelPolicy(max_bytes=len(CONTENT) - 1)
    options = FetchOptions(cache=tmp_path, formats=(), policy=policy, checksum=f"sha256:{'0' * 64}")
    with pytest.raises(InputError) as caught:
        HttpsSource().fetch(web.url("/m.tflite"), options, lambda *_: None)
    assert caught.value.code == "model_refused"
    assert "--model-max-bytes" in caught.value.hint
    assert not list((tmp_path / "partial").iterdir())


def test_a_model_of_the_allowed_size_is_fetched(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    assert fetch(web.url("/m.tflite"), tmp_path, ModelPolicy(max_bytes=len(CONTENT))).path.read_bytes() == CONTENT


# Files


def read(reference: str, policy: ModelPolicy, base: Path) -> ModelFiles:
    options = FetchOptions(cache=base / "cache", formats=(), base=base, policy=policy)
    return FileSource().fetch(reference, options, lambda *_: None)


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.tflite").write_bytes(b"model")
    (tmp_path / "open/link.tflite").symlink_to(tmp_path / "closed/m.tflite")
    (tmp_path / "open/circle.tflite").symlink_to(tmp_path / "open/circle.tflite")
    (tmp_path / "open/m.xml").write_text("<net/>")
    (tmp_path / "open/m.bin").symlink_to(tmp_path / "closed/m.tflite")
    return tmp_path


def test_a_file_below_an_allowed_folder_is_read(folders: Path) -> None:
    policy = ModelPolicy(folders=(folders / "closed/..//open",))
    assert read("open/m.tflite", policy, folders).path == folders / "open/m.tflite"
    assert read(f"file:{folders}/closed/../open/m.tflite", policy, folders).path.read_bytes() == b"model"


@pytest.mark.parametrize(
    "reference",
    ["closed/m.tflite", "closed/none.tflite", "open/../closed/m.tflite", "open/link.tflite", "open/m.xml", "opener/m",
     "/etc/passwd", "~/m.tflite", "open/circle.tflite", "x" * 5000],
)  # fmt: skip
def test_what_lies_elsewhere_is_refused_whether_it_exists_or_not(folders: Path, reference: str) -> None:
    with pytest.raises(InputError) as caught:
        read(reference, ModelPolicy(folders=(folders / "open",)), folders)
    assert caught.value.code == "path_refused"
    assert "--model-folders" in caught.value.hint
    assert str(folders) not in caught.value.message


def test_where_no_folder_is_allowed_no_file_is(folders: Path) -> None:
    with pytest.raises(InputError) as caught:
        read("open/m.tflite", ModelPolicy(folders=()), folders)
    assert caught.value.code == "path_refused"


def test_a_file_over_the_allowed_size_is_refused(folders: Path) -> None:
    assert read("open/m.tflite", ModelPolicy(max_bytes=5), folders).files
    with pytest.raises(InputError, match="larger than the 4 bytes") as caught:
        read("open/m.tflite", ModelPolicy(max_bytes=4), folders)
    assert caught.value.code == "model_refused"


# Schemes, and the policy on its way to the runner


@pytest.mark.parametrize("reference", ["m.onnx", "file:m.onnx", "/etc/passwd", "s3://bucket/m.onnx", "hf:a/b"])
def test_an_agent_fetches_nothing_but_what_its_schemes_name(tmp_path: Path, reference: str) -> None:
    options = FetchOptions(cache=tmp_path, formats=(), policy=AGENT_POLICY)
    with pytest.raises(InputError, match="zoo and https") as caught:
        fetch_model(reference, options, lambda *_: None)
    assert caught.value.code == "model_refused"
    assert "PRONY_MODEL_SCHEMES" in caught.value.hint
    assert "`prony agent start --model-schemes`" in caught.value.hint


def test_an_agent_builds_the_zoo(tmp_path: Path) -> None:
    options = FetchOptions(cache=tmp_path, formats=(".onnx",), policy=AGENT_POLICY)
    files, _ = fetch_model("zoo:tiny", options, lambda *_: None)
    assert files.path.is_file()


@pytest.mark.parametrize(
    "policy",
    [
        ModelPolicy(),
        AGENT_POLICY,
        ModelPolicy(schemes=()),
        replace(AGENT_POLICY, private=True, folders=(Path("/srv/models"), Path("/srv/more models"))),
    ],
    ids=str,
)
def test_a_policy_survives_the_way_to_the_runner(policy: ModelPolicy) -> None:
    assert policy_of(policy.variables()) == policy


def test_without_variables_everything_is_allowed() -> None:
    assert policy_of({}) == ModelPolicy()


def test_what_is_allowed_beats_a_variable_that_the_runner_would_inherit() -> None:
    inherited = AGENT_POLICY.variables()
    assert policy_of(inherited | replace(AGENT_POLICY, private=True).variables()).private


@pytest.mark.parametrize(
    "variables",
    [{"PRONY_MODEL_PRIVATE": "no"}, {"PRONY_MODEL_PRIVATE": ""}, {"PRONY_MODEL_MAX_BYTES": "20GiB"},
     {"PRONY_MODEL_MAX_BYTES": "-1"}, {"PRONY_MODEL_MAX_BYTES": ""}],
    ids=str,
)  # fmt: skip
def test_a_variable_that_cannot_be_understood_is_refused(variables: dict[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        policy_of(variables)
    assert caught.value.hint


def test_a_folder_that_cannot_be_told_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be allowed"):
        ModelPolicy(folders=(Path(f"/srv/a{os.pathsep}b"),)).variables()


def test_the_runner_heeds_the_policy_of_its_environment(tmp_path: Path) -> None:
    workload = ModelWorkload(kind="model", model=str(tmp_path / "m.onnx"), engine="null")
    job = Job(id="x-001", experiment_id="x", name="t", workload=workload)
    (tmp_path / "job.json").write_text(job.model_dump_json())
    command = [sys.executable, "-m", "prony", "exec", str(tmp_path / "job.json"), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, env=os.environ | AGENT_POLICY.variables(), capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    failure = Result.read_json((tmp_path / "out/result.json").read_bytes()).failure
    assert failure is not None
    assert (failure.code, failure.whose) == ("path_refused", "input")
