import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from podgpu.config import OPTIONS, Config
from podgpu.config.precedence import load
from podgpu.config.sections import collected
from podgpu.errors import UserError
from podgpu.option import options_of
from podgpu.option.value import Address
from podgpu.sources.nvml import options as nvml
from podgpu.sources.simulator import options as simulator
from podgpu.views.dialects import gpu_mem_monitor, hami
from tools.configuration import markdown

ROOT = Path(__file__).parents[2]


def file(folder: Path, text: str) -> dict[str, str]:
    """Write a configuration file; the environment that names it."""
    path = folder / "podgpu.yaml"
    path.write_text(text)
    return {"PODGPU_CONFIG_FILE": str(path)}


def refusal(flags: dict[str, list[str]], environ: dict[str, str]) -> str:
    with pytest.raises(UserError) as caught:
        load(flags, environ)
    return str(caught.value)


def test_every_name_derives_from_the_flag() -> None:
    option = OPTIONS["web_listen_address"]
    assert option.flag == "--web.listen-address"
    assert option.environment == "PODGPU_WEB_LISTEN_ADDRESS"
    assert option.key == "web.listen-address"


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_named_after_the_flag(name: str) -> None:
    assert name == OPTIONS[name].key.replace(".", "_").replace("-", "_")


def test_a_field_of_the_core_is_named_after_the_flag() -> None:
    assert all(field == option.name for field, option in options_of(Config).items())


def test_without_any_setting_the_defaults_hold() -> None:
    config = load({}, {"NODE_NAME": "node-7"})
    assert config == Config(
        config_file=None,
        interval=5.0,
        node_name="node-7",
        source="nvml",
        path_procfs=Path("/proc"),
        web_listen_address=(Address("", 19400),),
        web_max_requests=40,
        web_max_connections=256,
        web_max_streams=500,
        series_limit=20000,
        log_level="info",
        log_format="logfmt",
    )


def test_without_any_setting_sources_and_dialects_have_their_defaults() -> None:
    config = load({}, {})
    assert config.of(nvml.NvmlOptions) == nvml.NvmlOptions(library=None)
    assert config.of(simulator.SimulatorOptions) == simulator.SimulatorOptions(seed=1)
    assert config.of(hami.HamiOptions).names == "new"


def test_a_source_or_dialect_gets_its_own_options() -> None:
    config = load({"simulator_seed": ["7"]}, {"PODGPU_DIALECT_HAMI_NAMES": "both"})
    assert config.of(simulator.SimulatorOptions).seed == 7
    assert config.of(hami.HamiOptions).names == "both"
    assert config.sections == (simulator.SimulatorOptions(seed=7), hami.HamiOptions(names="both"))


def test_other_programs_variables_count_if_the_option_is_not_set() -> None:
    others = {"HOST_IP": "10.0.0.1", "hostIP": "10.0.0.2"}
    assert load({}, others).of(gpu_mem_monitor.GpuMemMonitorOptions).node_ip == "10.0.0.1"
    assert load({}, {"hostIP": "10.0.0.2"}).of(gpu_mem_monitor.GpuMemMonitorOptions).node_ip == "10.0.0.2"
    assert load({}, {**others, "PODGPU_NODE_IP": "::1"}).of(gpu_mem_monitor.GpuMemMonitorOptions).node_ip == "::1"
    assert refusal({}, {"NODE_NAME": " "}).startswith("NODE_NAME: the value is empty")


def test_two_options_with_one_flag_are_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"two options are called --dialect.hami.names"):
        collected((hami.HamiOptions, hami.HamiOptions))


def test_flag_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    environ = file(tmp_path, "interval: 2s\nnode-name: from-file\nlog: {level: debug}\n")
    environ |= {"PODGPU_INTERVAL": "3s", "PODGPU_NODE_NAME": "from-environment"}
    config = load({"interval": ["4s"]}, environ)
    assert (config.interval, config.node_name, config.log_level) == (4.0, "from-environment", "debug")
    assert config.log_format == "logfmt"


def test_the_file_wins_over_node_name_of_the_pod(tmp_path: Path) -> None:
    assert load({}, file(tmp_path, "node-name: a") | {"NODE_NAME": "b"}).node_name == "a"


def test_the_flag_for_the_file_wins_over_its_environment(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("interval: 7")
    environ = file(tmp_path, "interval: 2")
    assert load({"config_file": [str(tmp_path / "other.yaml")]}, environ).interval == 7.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5.0), ("0.5", 0.5), ("5s", 5.0), ("500ms", 0.5), ("1m", 60.0), ("100ms", 0.1), ("5m", 300.0)],
)
def test_durations_are_seconds_or_have_a_unit(text: str, seconds: float) -> None:
    assert load({"interval": [text]}, {}).interval == seconds


def test_several_addresses_by_flag_environment_and_file(tmp_path: Path) -> None:
    both = (Address("", 1), Address("::1", 2, "dcgm"))
    assert load({"web_listen_address": [":1", "[::1]:2=dcgm"]}, {}).web_listen_address == both
    assert load({}, {"PODGPU_WEB_LISTEN_ADDRESS": ":1, [::1]:2=dcgm"}).web_listen_address == both
    in_file = 'web: {listen-address: [":1", "[::1]:2=dcgm"]}'
    assert load({}, file(tmp_path, in_file)).web_listen_address == both


def test_addresses_given_by_flag_replace_those_of_the_environment() -> None:
    config = load({"web_listen_address": [":1"]}, {"PODGPU_WEB_LISTEN_ADDRESS": ":2"})
    assert config.web_listen_address == (Address("", 1),)


def test_empty_settings_count_as_not_set(tmp_path: Path) -> None:
    environ = file(tmp_path, "interval:\nlog:\nweb: {listen-address: []}\n") | {"PODGPU_SOURCE": ""}
    config = load({}, environ)
    assert (config.interval, config.source, config.log_level) == (5.0, "nvml", "info")
    assert config.web_listen_address == (Address("", 19400),)


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_an_empty_file_sets_nothing(tmp_path: Path, text: str) -> None:
    assert load({}, file(tmp_path, text)).interval == 5.0


@pytest.mark.parametrize(("text", "value"), [("on", "on"), ("true", "on"), ("True", "on"), ("false", "off")])
def test_every_switch_may_be_written_as_a_boolean(tmp_path: Path, text: str, value: str) -> None:
    config = load({}, file(tmp_path, f"web: {{kube-auth: {text}}}\nseries: {{detail: {text}}}"))
    assert (config.web_kube_auth, config.series_detail) == (value, value)


def test_variables_kubernetes_sets_for_a_service_are_ignored() -> None:
    load(
        {},
        {"PODGPU_SERVICE_HOST": "10.0.0.1", "PODGPU_PORT": "tcp://10.0.0.1:19400", "PODGPU_INTERVALL": "1"},
    )


def test_no_option_is_named_like_a_variable_kubernetes_sets() -> None:
    injected = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_[0-9].*)?)$")
    assert not [option for option in OPTIONS.values() if injected.search(option.environment)]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"interval": ["abc"]}, ("--interval", "'abc'", "500ms")),
        ({"interval": ["0.05"]}, ("100ms to 5m",)),
        ({"interval": ["6m"]}, ("100ms to 5m",)),
        ({"interval": ["9" * 400]}, ("not a duration",)),
        ({"interval": ["nan"]}, ("not a duration",)),
        ({"interval": ["-1"]}, ("not a duration",)),
        ({"interval": [" "]}, ("empty",)),
        ({"source": ["nvm"]}, ("did you mean nvml?",)),
        ({"log_level": ["xyz"]}, ("choose debug, info, warn or error",)),
        ({"nvml_library": ["/does/not/exist"]}, ("--nvml.library", "no file")),
        ({"web_max_requests": ["0"]}, ("1 to 10000",)),
        ({"web_max_requests": ["1.5"]}, ("whole number",)),
        ({"web_max_requests": ["9" * 5000]}, ("whole number",)),
        ({"simulator_seed": ["-1"]}, ("whole number",)),
        ({"web_listen_address": [":1,"]}, ("empty",)),
        ({"web_listen_address": ["80"]}, ("--web.listen-address", "has no port")),
    ],
)
def test_a_malformed_value_names_the_flag_and_the_remedy(flags: dict[str, list[str]], words: tuple[str, ...]) -> None:
    message = refusal(flags, {})
    assert all(word in message for word in words), message


def test_a_malformed_value_names_the_variable_or_the_key(tmp_path: Path) -> None:
    assert refusal({}, {"PODGPU_INTERVAL": "x"}).startswith("PODGPU_INTERVAL: ")
    assert "podgpu.yaml: web.max-requests: " in refusal({}, file(tmp_path, "web: {max-requests: many}"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("intervall: 5s", ("unknown key 'intervall'", "did you mean interval?")),
        ("web: {listen-adress: ':1'}", ("did you mean web.listen-address?",)),
        ("config: {file: x}", ("unknown key 'config'",)),
        ("zzz: 1", ("docs/configuration.md",)),
        ("web: yes", ("web is a section",)),
        ("interval: [1, 2]", ("interval takes one value",)),
        ("interval: {a: b}", ("interval takes one value",)),
        ("web: {listen-address: {a: b}}", ("a list of values",)),
        ("- a\n- b", ("keys and values",)),
        ("just words", ("keys and values",)),
        ("a: b: c", ("line 1", "not valid YAML")),
        ("interval: 1\nlog: [", ("line 2", "not valid YAML")),
        ("series: {limit: 200}\nseries: {processes: on}", ("line 2", "appears twice")),
        ("? [a]\n: b", ("not valid YAML",)),
        ("!!python/object/apply:os.system [echo]", ("keys and values",)),
        ("web: &a {web: *a}", ("line 1", "*a is an alias")),
        ("[" * 1500, ("not valid YAML",)),
        ("a: \x01", ("not valid YAML",)),
    ],
)
def test_a_bad_file_is_refused_by_its_name_with_advice(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    message = refusal({}, file(tmp_path, text))
    assert "podgpu.yaml" in message
    assert all(word in message for word in words), message


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_text("#" * (1 << 20) + "\n")
    missing, folder, binary, large = (
        refusal({"config_file": [str(path)]}, {})
        for path in (tmp_path / "missing", tmp_path, tmp_path / "binary", tmp_path / "large")
    )
    assert "No such file" in missing
    assert "directory" in folder
    assert "UTF-8" in binary
    assert "1 MiB" in large


def test_yaml_reads_values_by_the_rules_of_the_flags(tmp_path: Path) -> None:
    """YAML itself would read 1:30 as ninety and 010 as eight."""
    assert "not a duration" in refusal({}, file(tmp_path, "interval: 1:30"))
    assert load({}, file(tmp_path, "simulator: {seed: 010}")).of(simulator.SimulatorOptions).seed == 10


def test_the_page_of_the_docs_is_fresh() -> None:
    assert (ROOT / "docs/configuration.md").read_text() == markdown(), "run make docs"


def test_the_page_names_every_option() -> None:
    page = markdown()
    for option in OPTIONS.values():
        assert f"`{option.flag}`" in page
        assert f"`{option.environment}`" in page


def test_the_file_in_the_docs_says_what_the_defaults_say(tmp_path: Path) -> None:
    example = markdown().partition("```yaml\n")[2].partition("```")[0]
    environ = {"NODE_NAME": "n"}
    loaded = load({}, file(tmp_path, example) | environ)
    assert replace(loaded, config_file=None) == load({}, environ)
    assert yaml.safe_load(example)["web"]["listen-address"] == [":19400"]


def test_a_library_named_without_a_folder_is_the_one_that_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's loader would look for a bare name everywhere but here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "libnvidia-ml.so.1").touch()
    config = load({"nvml_library": ["libnvidia-ml.so.1"]}, {})
    assert config.of(nvml.NvmlOptions).library == tmp_path / "libnvidia-ml.so.1"


def test_a_variable_that_nobody_knows_is_named_with_advice() -> None:
    services = {
        "PODGPU_SERVICE_HOST": "10.0.0.1",
        "PODGPU_SERVICE_PORT_HTTP": "19400",
        "PODGPU_PORT": "tcp://10.0.0.1:19400",
        "PODGPU_PORT_19400_TCP_ADDR": "10.0.0.1",
        "PODGPU_CLUSTER_PORT": "tcp://10.0.0.1:19400",
    }
    config = load({}, {**services, "PODGPU_INTERVALL": "1s", "PODGPU_COLOUR": "", "PODGPU_INTERVAL": "1s"})
    assert dict(config.unknown) == {
        "PODGPU_COLOUR": "docs/configuration.md lists the options",
        "PODGPU_INTERVALL": "did you mean PODGPU_INTERVAL?",
    }


def test_a_dialect_that_does_not_exist_is_blamed_on_where_it_stands(tmp_path: Path) -> None:
    wrong = "web: {listen-address: [':19400', ':9400=dcgmm']}"
    assert refusal({}, file(tmp_path, wrong)).endswith(
        "podgpu.yaml: web.listen-address: there is no dialect 'dcgmm'; did you mean dcgm?"
    )
    assert refusal({"web_listen_address": [":1=qqqq"]}, {}).startswith(
        "--web.listen-address: there is no dialect 'qqqq'; choose one of: native, cadvisor, "
    )
