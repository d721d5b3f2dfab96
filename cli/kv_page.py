"""The page docs/kv.md, made from the settings themselves: python -m localctx.cli.kv_page > docs/kv.md"""

from __future__ import annotations

from localctx.kv_settings import LATER_KEYS, setting_rows

from .terminal import write_as_is

__all__ = ["page"]

HEAD = """# Cache settings

Made by `python -m localctx.cli.kv_page > docs/kv.md` from the settings themselves.

`--kv KEY=VALUE,...` (also `--kv-overrides`, repeatable), `LOCALCTX_KV`, or `kv = "…"` in `localctx.toml`,
merged key by key: of a key given twice the last value holds. An unknown key names the nearest known one.

| key | values | default | meaning |
|---|---|---|---|
"""


def page() -> str:
    """The page as it should be."""
    rows = (
        f"| `{key}` | {values} | {f'`{default}`' if default else ''} | {meaning} |"
        for key, values, default, meaning in setting_rows()
    )
    later = ", ".join(f"`{key}`" for key in LATER_KEYS)
    return HEAD + "\n".join(rows) + f"\n\n{later}: *later*, refused by name.\n"


if __name__ == "__main__":
    write_as_is(page())
