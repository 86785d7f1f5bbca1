"""The edge of the command line: whatever happens has an exit code that says whose move it is."""

from __future__ import annotations

import errno
import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from prony.cli import main


def broken(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_it(*_: object) -> int:
        raise error

    monkeypatch.setattr(main, "_dispatch", raise_it)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("surprise"), "RuntimeError: surprise"),
        (OSError(errno.EBADF, "Bad file descriptor"), "OSError: [Errno 9] Bad file descriptor"),
    ],
)
def test_a_fault_of_our_own_is_not_a_failed_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, told: str
) -> None:
    broken(error, monkeypatch)
    assert main.main(["list"]) == 3
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert f"error: {told}" in said


def test_a_path_that_cannot_be_written_needs_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(PermissionError(13, "Permission denied", str(tmp_path)), monkeypatch)
    assert main.main(["report"]) == 3
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert str(tmp_path) in said
    assert "hint: check the path, its permissions and the free space" in said


def test_an_error_is_json_where_the_answer_would_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(RuntimeError("surprise"), monkeypatch)
    assert main.main(["list", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "error"


def test_a_pipe_that_breaks_to_another_process_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(BrokenPipeError(32, "Broken pipe"), monkeypatch)
    assert main.main(["run"]) == 3
    assert "error: a process that this command needs has ended" in capsys.readouterr().err


def test_a_missing_argument_is_told_with_the_place_that_explains_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["llm"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "prony llm: error: the following arguments are required: MODEL",
        " hint: prony llm --help explains the arguments",
    ]


def test_an_action_that_was_left_out_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["agent", "--server", "http://127.0.0.1:1"])
    assert "hint: write one of these actions first; prony agent --help" in capsys.readouterr().err


def test_an_option_of_an_engine_that_is_no_yaml_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["llm", "zoo:tiny-llama", "--engine", "transformers", "--option", "a=[1"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "error: --option 'a=[1'" in said


@pytest.mark.parametrize(
    ("option", "hint"), [("--repeats", "--runs sets the number of executions"), ("--batch", "leave it out")]
)
def test_only_a_count_of_runs_has_its_like_for_a_command(
    option: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["bench", "--command", "ls", option, "2"]) == 2
    assert hint in capsys.readouterr().err


def test_models_are_compared_by_bench_and_not_by_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.onnx"
    model.touch()
    assert main.main(["compare", str(model), "last"]) == 2
    assert "prony bench A B" in capsys.readouterr().err


def test_a_wild_guess_is_not_offered_where_the_names_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["bench", "zoo:mlp", "--engine", "tensorrt"]) == 2
    said = capsys.readouterr().err
    assert "did you mean" not in said
    assert "onnxruntime" in said


def test_a_command_of_a_plugin_says_what_it_does_or_where_it_is_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "told_command.py").write_text('"""`prony told`: say what was told.\n\nAnd more."""\n')
    (tmp_path / "mute_command.py").write_text("raise RuntimeError\n")
    (tmp_path / "broken_command.py").write_text("def (\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("told", "mute", "broken", "absent.inner")
    entries = {name: EntryPoint(name, f"{name}_command", "prony.commands") for name in names}
    monkeypatch.setattr(main, "_brought_commands", lambda: entries)
    assert main.list_brought() == {
        "told": "say what was told",
        "mute": "a command of mute_command; see its --help",
        "broken": "a command of broken_command; see its --help",
        "absent.inner": "a command of absent.inner_command; see its --help",
    }
