"""What `import localctx` promises."""

from __future__ import annotations

import importlib
import importlib.metadata
from pathlib import Path

import pytest

import localctx
import localctx.errors


def test_all_is_sorted_and_exists() -> None:
    assert localctx.__all__ == sorted(localctx.__all__)
    for name in localctx.__all__:
        assert getattr(localctx, name) is not None


def test_everything_in_an_all_exists() -> None:
    package = Path(localctx.__file__).parent
    for path in package.rglob("*.py"):
        parts = [part for part in path.relative_to(package).with_suffix("").parts if part != "__init__"]
        module = importlib.import_module(".".join(["localctx", *parts]))
        for name in getattr(module, "__all__", []):
            assert hasattr(module, name), f"{path}: {name}"


def test_version_agrees_with_the_package_and_the_changelog() -> None:
    assert importlib.metadata.version("localctx") == localctx.__version__
    changelog = Path(__file__).parents[2] / "CHANGELOG.md"
    assert f"\n## {localctx.__version__}\n" in changelog.read_text("utf-8")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        localctx.nonsense  # noqa: B018  # the access is the test


def test_every_error_has_an_exit_code_of_the_contract() -> None:
    kinds = [getattr(localctx.errors, name) for name in localctx.errors.__all__]
    assert {kind.exit_code for kind in kinds} == {1, 2, 3, 4, 130}
    assert all(issubclass(kind, localctx.errors.LocalctxError) for kind in kinds)
