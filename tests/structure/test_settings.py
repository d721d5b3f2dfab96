"""Where a setting's value comes from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from localctx.errors import UsageError
from localctx.settings import DEFAULT_MODEL, Settings, load_settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No settings of the person who runs the tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(text)
    return path


def test_without_anything_the_defaults_hold() -> None:
    assert load_settings({}, environ={}) == Settings()
    assert Settings().model == DEFAULT_MODEL


def test_flags_before_environment_before_file_before_manifest(tmp_path: Path) -> None:
    layers = [
        ({"temp": 0.1}, "flags"),
        ({"LOCALCTX_TEMP": "0.2"}, "environment"),
        ("temp = 0.3\n", "file"),
        ({"temp": 0.4}, "manifest"),
    ]
    for first in range(len(layers)):
        flags, environ, file, manifest = (
            layer if number >= first else type(layer)() for number, (layer, _) in enumerate(layers)
        )
        settings = load_settings(flags, manifest, config(tmp_path, str(file)), environ)  # type: ignore[arg-type]  # unpacked
        assert settings.temp == pytest.approx(0.1 * (first + 1)), layers[first][1]


def test_layers_are_merged_setting_by_setting(tmp_path: Path) -> None:
    settings = load_settings(
        {"ctx": 4096, "seed": None},
        manifest={"temp": 0.6, "top_p": 0.9},
        config=config(tmp_path, 'model = "x"\ntop_p = 1\noffline = true\n'),
        environ={"LOCALCTX_SEED": "7", "LOCALCTX_THREADS": "", "PATH": "/bin"},
    )
    assert settings == Settings(model="x", ctx=4096, seed=7, temp=0.6, top_p=1.0, offline=True)


def test_the_file_of_the_configuration_folder_is_read(home: Path) -> None:
    (home / "localctx").mkdir(parents=True)
    (home / "localctx" / "localctx.toml").write_text("threads = 3\n")
    assert load_settings({}, environ={}).threads == 3


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("offline", "1", True),
        ("offline", "No", False),
        ("force", "true", True),
        ("gpu_layers", "12", "12"),
        ("min_p", "0", 0.0),
        ("ctx", "4096", 4096),
    ],
)
def test_variables_are_typed(name: str, value: str, wanted: object) -> None:
    found = getattr(load_settings({}, environ={f"LOCALCTX_{name.upper()}": value}), name)
    assert (found, type(found)) == (wanted, type(wanted))


def test_variables_that_are_no_settings_are_known() -> None:
    environ = {"LOCALCTX_DEBUG": "1", "LOCALCTX_MODELS_DIR": "/models", "LOCALCTX_TYPO": ""}
    assert load_settings({}, environ=environ) == Settings()


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"LOCALCTX_MODLE": "x"}, "'LOCALCTX_MODLE'; did you mean 'LOCALCTX_MODEL'"),
        ({"LOCALCTX_OFLINE": "1"}, "did you mean 'LOCALCTX_OFFLINE'"),
        ({"LOCALCTX_MODEL_DIR": "x"}, "did you mean 'LOCALCTX_MODELS_DIR'"),
        ({"LOCALCTX_CTX": "many"}, "ctx = 'many' in environment is not of type int"),
        ({"LOCALCTX_OFFLINE": "maybe"}, "not of type bool"),
        ({"LOCALCTX_CTX": "3"}, "out of range"),
        ({"LOCALCTX_STRATEGY": "exakt"}, "did you mean 'exact'"),
        ({"LOCALCTX_TEMP": "nan"}, "out of range"),
        ({"LOCALCTX_GPU_LAYERS": "-1"}, "gpu_layers"),
    ],
)
def test_bad_variables_are_refused(environ: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_settings({}, environ=environ)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modle = 'x'\n", "unknown setting 'modle' in .*my.toml; did you mean 'model'"),
        ("ctx = 'many'\n", "ctx = 'many' in .*my.toml is not of type int"),
        ("ctx = true\n", "not of type int"),
        ("[run]\nctx = 1\n", "unknown setting 'run'"),
        ("ctx =\n", "cannot read .*my.toml"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_settings({}, config=config(tmp_path, text), environ={})


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none\.toml"):
        load_settings({}, config=tmp_path / "none.toml", environ={})


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("50G", 50_000_000_000), ("1.5 GiB", 3 << 29), ("512mb", 512_000_000), ("1_000", 1000), ("7", 7)],
)
def test_sizes_are_read_as_people_write_them(text: str, n_bytes: int) -> None:
    assert load_settings({"store_limit": text}, environ={}).store_limit_bytes == n_bytes


@pytest.mark.parametrize("text", ["", "G", "-1G", "1X", "1 Gb b", "0", "1ib", "9" * 40])
def test_what_is_no_size_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="store_limit"):
        load_settings({"store_limit": text}, environ={})
