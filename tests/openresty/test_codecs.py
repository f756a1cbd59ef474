"""Encodings, digests and times, compared with those of nginx-lua."""

import pathlib

import pytest
from openresty import library

SNIPPETS = pathlib.Path(__file__).parent / "snippets"


@pytest.mark.parametrize("name", ["cjson", "codecs", "modules"])
def test_every_function_gives_what_it_gives_in_nginx(tmp_path, name):
    text = (SNIPPETS / f"{name}.lua").read_text()
    # Empty matches split off the text before them, UTF-8 is stepped over by whole characters, and
    # the compiler of expressions has its own messages.
    allowed = {"cjson": set(), "codecs": set(), "modules": {"split17", "split19", "split30", "split25"}}[name]
    theirs, ours = library.Both(tmp_path).run(text)
    assert library.differences(theirs, ours, allowed) == {}
