import errno
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from podgpu import __version__
from podgpu.cli import _commands as commands
from podgpu.cli import main
from podgpu.config import OPTIONS, Config


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configurations that `podgpu agent` was run with, instead of running it."""
    from podgpu.cli import agent

    configs: list[Config] = []

    def run(config: Config, _: object) -> int:
        configs.append(config)
        return 0

    monkeypatch.setattr(agent, "run", run)
    return configs


def test_flags_environment_and_file_reach_the_command(
    seen: list[Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "podgpu.yaml"
    path.write_text("interval: 2s\nsource: simulator\nlog: {level: error}\n")
    monkeypatch.setenv("PODGPU_INTERVAL", "3s")
    monkeypatch.setenv("PODGPU_SOURCE", "nvml")
    arguments = [
        "--config.file",
        str(path),
        "--interval=4s",
        "--web.listen-address",
        ":1",
        "--web.listen-address=:2",
    ]
    assert main.main(["agent", *arguments]) == 0
    (config,) = seen
    assert (config.interval, config.source, config.log_level) == (4.0, "nvml", "error")
    assert [address.port for address in config.web_listen_address] == [1, 2]


BAD = [
    (["agnet"], "did you mean agent?"),
    (["nonsense"], "see podgpu --help"),
    (["--interval", "3"], "podgpu COMMAND --interval"),
    (["agent", "--intervall=3"], "unknown option --intervall; did you mean --interval?"),
    (["agent", "--web.listen-adress", ":1"], "did you mean --web.listen-address?"),
    (["agent", "-z"], "unknown option -z"),
    (["agent", "extra"], "takes no argument 'extra'"),
    (["agent", "--inter", "3"], "did you mean --interval?"),
    (["agent", "--interval"], "--interval: expected one argument"),
    (["agent", "--interval", "soon"], "'soon' is not a duration"),
    (["agent", "--interval=a\nb\x1b[31m"], "not a duration"),
    (["agent", "--source", "nvlm"], "did you mean nvml?"),
    (["agent", "--nvml.library", "/does/not/exist"], "no file '/does/not/exist'"),
    (["agent", "--config.file", "/does/not/exist"], "No such file"),
    (["agent", "--config.file", "/"], "directory"),
    (["agent", "--web.listen-address", "80"], "has no port"),
    (["agent", "--web.listen-address", ":99999"], "0 to 65535"),
    (["agent", "--web.listen-address", "127.0.0.1:0=klingon"], "klingon"),
    (["snapshot", "-o", "xml"], "invalid choice: 'xml'"),
    (["top", "pod"], "'pod' is not known; did you mean pods?"),
    (["top", "tenants"], "'tenants' is not known; choose pods, workloads, namespaces, gpus or nodes"),
    (["completion"], "the following arguments are required: bash|zsh|fish; see"),
    (["completion", "tcsh"], "'tcsh' is not known; choose bash, zsh or fish"),
    (["idle", "--for=soon"], "--for: 'soon' is not a duration; write seconds or a unit"),
    (["fit", "--headroom=much"], "--headroom: 'much' is not a percentage from 0 to 400"),
    (["fit", "--percentile=49"], "--percentile: '49' is not a percentage from 50 to 100"),
    (["fit", "--release-after=1h"], "--release-after: 1h is less than a day"),
    (["fit", "--plan=parts", "-o", "metrics"], "leave out --plan"),
    (["report", "--min-coverage=2"], "--min-coverage: '2' is no ratio"),
    (["metrics", "--interval", "3"], "unknown option --interval"),
    (["demo", "--source", "nvml"], "unknown option --source"),
    (["demo", "--kube.api", "off"], "unknown option --kube.api"),
    (["demo", "--path.kubelet", "/"], "unknown option --path.kubelet"),
]


@pytest.mark.parametrize(("argv", "advice"), BAD, ids=[" ".join(argv).replace("\n", " ") for argv, _ in BAD])
def test_a_mistake_is_one_line_and_exit_code_2(
    argv: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("podgpu: ")
    assert advice in err
    assert len(err.splitlines()) == 1
    assert err[:-1].isprintable()


def test_bad_yaml_is_one_line_from_a_real_process(tmp_path: Path) -> None:
    path = tmp_path / "podgpu.yaml"
    path.write_text("web: [\n")
    done = subprocess.run(
        [sys.executable, "-m", "podgpu", "agent"],
        env={**os.environ, "PODGPU_CONFIG_FILE": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"podgpu: {path}: line ")
    assert done.stderr.count("\n") == 1


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"podgpu {__version__}\n"


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_names_every_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(argv) == 0
    out = capsys.readouterr().out
    assert {"agent", "demo", "metrics", "snapshot"} <= set(commands.command_names())
    for name in commands.command_names():
        assert f"\n  {name} " in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", commands.command_names())
def test_the_help_of_a_command_fits_80_columns_and_names_its_options(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main.main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    command = commands.find_command(name)
    assert command.help in out
    for option in OPTIONS.values():
        offered = option in [OPTIONS[each] for each in command.options]
        # From Python 3.13 on, the placeholder stands once, after a short form.
        shown = rf"  {re.escape(option.flag)}(, --\S+)? {re.escape(option.placeholder)}"
        assert bool(re.search(shown, out)) == offered
        assert (f"${option.environment}" in out) == offered


def test_options_stand_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["agent", "--help"])
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["options:", "general:", "source:", "kubernetes:", "web:", "dialects:", "log:"]


def test_a_kubectl_plugin_speaks_of_kubectl(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl-podgpu"])
    main.main(["agent", "--help"])
    assert capsys.readouterr().out.startswith("usage: kubectl podgpu agent [options]")
    main.main(["nonsense"])
    assert capsys.readouterr().err.endswith("see kubectl podgpu --help\n")


def test_ctrl_c_is_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert ends_with(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr() == ("", "")


def test_a_refusal_of_the_system_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.EACCES, "Permission denied", "/etc/out\n.json")
    assert ends_with(error, monkeypatch) == 2
    assert capsys.readouterr().err == "podgpu: /etc/out\\x0a.json: Permission denied\n"


def ends_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    from podgpu.cli import agent

    def run(*_: object) -> int:
        raise error

    monkeypatch.setattr(agent, "run", run)
    return main.main(["agent"])


def test_a_reader_that_leaves_is_no_error() -> None:
    done = subprocess.run(
        [
            "bash",
            "-c",
            f"{shlex.quote(sys.executable)} -m podgpu agent --help | true; exit ${{PIPESTATUS[0]}}",
        ],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_output_that_cannot_be_written_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "podgpu", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "podgpu: the output: No space left on device\n"


def test_the_command_line_alone_loads_nothing_heavy() -> None:
    """Help, mistakes and start-up must not wait for libraries they do not need."""
    probe = (
        "import sys; from podgpu.cli.main import main; main(['--help']); main(['agent', '--interval', 'x']);"
        "print([name for name in ('aiohttp', 'yaml', 'asyncio', 'pynvml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_old_flag_of_a_renamed_option_works_and_the_log_says_so(
    seen: list[Config], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(OPTIONS, "interval", replace(OPTIONS["interval"], was="--read.every"))
    assert main.main(["agent", "--read.every=2s"]) == 0
    assert seen[0].interval == 2.0
    assert "old=--read.every new=--interval" in capfd.readouterr().err
    assert main.main(["agent", "--help"]) == 0
    assert "--read.every" not in capfd.readouterr().out


def test_a_variable_that_is_no_option_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PODGPU_SERIES_LIMITT", "5")
    assert main.main(["metrics"]) == 0
    assert 'variable=PODGPU_SERIES_LIMITT advice="did you mean PODGPU_SERIES_LIMIT?"' in capfd.readouterr().err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_can_still_be_asked_whether_they_are_a_terminal(closed: str) -> None:
    code = "import sys; from podgpu.cli.main import main; main(['--version'])"
    code += "; sys.exit(any(each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr)))"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {closed}"
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
