"""Scripts for a machine's shell: values stay data, banners stay outside, and what comes back is not trusted."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from prony.errors import InputError, TransportError
from prony.model.event import Event
from prony.plugins.executors.folders import parse_folder_states
from prony.plugins.executors.kubectl import Kubectl, PodShell
from prony.plugins.executors.shell import Shell, SshShell


def test_what_a_login_prints_is_no_part_of_the_answer() -> None:
    shell = Shell(setup=["echo Welcome to the cluster", "greeting=hello"])
    done = shell.run('echo "$greeting"; printf "no line end"; exit 3', {})
    assert (done.exit_code, done.stdout) == (3, b"hello\nno line end")


@pytest.mark.parametrize("value", ["a b", "$(touch x)", "'; exit 9; '", "two\nlines", '"`x`"', "\\", "ü"])
def test_a_value_is_data_whatever_it_holds(value: str) -> None:
    done = Shell().run('printf %s "$given"', {"given": value})
    assert (done.exit_code, done.stdout.decode()) == (0, value)


def test_a_script_reads_what_it_is_given() -> None:
    assert Shell().run("cat", {}, stdin=b"\x00\xff\n").stdout == b"\x00\xff\n"


def test_a_shell_that_does_not_answer_is_told() -> None:
    with pytest.raises(TransportError, match=r"no answer from the shell in 0\.2 s"):
        Shell().run("exec sleep 3", {}, timeout_s=0.2)


def test_a_shell_that_ends_before_the_answer_is_told() -> None:
    with pytest.raises(TransportError, match="the shell ended with 7"):
        Shell(setup=["exit 7"]).run("true", {})


def test_a_failed_command_is_named_with_its_last_words() -> None:
    with pytest.raises(TransportError, match="the start failed: no such thing"):
        Shell().run("echo no such thing >&2; exit 1", {}).require("the start")


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", "a;b", "$(x)", ""])
def test_what_is_no_host_never_reaches_ssh(host: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        SshShell(host, tmp_path)


@pytest.mark.parametrize("name", ["../outside", "/outside", "result/../../outside"])
def test_a_file_of_another_folder_is_refused(name: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "evil.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    into = tmp_path / "a" / "b"
    with pytest.raises(TransportError, match="a file outside its folder"):
        Shell().receive('cat "$archive"', {"archive": str(tmp_path / "evil.tar")}, into, names=())
    assert not into.exists()


def test_only_whole_lines_of_events_are_read_and_the_rest_is_read_later() -> None:
    first = Event(kind="started", job_id="j", total=2).model_dump_json().encode() + b"\n"
    printed = b"k1 present,begun %d\n" % (len(first) + 5) + first + b'{"kin' + b"\nk2 absent 0\nk3 present,DONE 0\n\n"
    found = parse_folder_states(printed, {"k1": 100, "k2": 0, "k3": 7, "k4": 9})
    assert [event.total for event in found["k1"].events] == [2]
    assert found["k1"].offset == 100 + len(first)
    assert (found["k2"].flags, found["k3"].has("DONE"), found["k3"].offset) == (frozenset(), True, 7)
    assert (found["k4"].flags, found["k4"].offset) == (frozenset(), 9)


def _hint(told: str, tmp_path: Path, host: str = "me@rack-7") -> str:
    hint: str = SshShell(host, tmp_path, options=("-p", "2222"))._explain_loss(255, told).hint
    return hint


def test_a_changed_host_key_is_forgotten_before_ssh_asks_again(tmp_path: Path) -> None:
    unknown = "SHA256:abc\nHost key verification failed.\n"
    assert _hint(unknown, tmp_path).endswith("then run: ssh -p 2222 me@rack-7")
    changed = f"REMOTE HOST IDENTIFICATION HAS CHANGED!\n{unknown}"
    assert _hint(changed, tmp_path).endswith("then run: ssh-keygen -R rack-7 && ssh -p 2222 me@rack-7")
    changed += "Host key for [10.0.0.7]:2222 has changed and you have requested strict checking.\n"
    assert "ssh-keygen -R '[10.0.0.7]:2222' && " in _hint(changed, tmp_path)


def test_a_login_by_hand_may_ask(tmp_path: Path) -> None:
    hint = _hint("Permission denied (publickey,password).", tmp_path)
    assert "log in once by hand" in hint
    assert "BatchMode" not in hint


def test_a_pod_that_does_not_answer_is_described_where_it_is() -> None:
    kubectl = Kubectl("kubectl", "lab", kubeconfig="/k c", context="east", namespace="bench")
    hint = PodShell(kubectl, "pod-1")._explain_loss(1, "gone").hint
    assert hint == "to see its state: kubectl --namespace=bench '--kubeconfig=/k c' --context=east describe pod pod-1"
