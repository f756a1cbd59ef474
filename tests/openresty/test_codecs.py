"""Encodings, digests and times beside those of nginx-lua."""

import pathlib

import pytest
from openresty import library

SNIPPETS = pathlib.Path(__file__).parent / "snippets"


@pytest.mark.parametrize("name", ["cjson", "codecs", "modules"])
def test_every_function_gives_what_it_gives_in_nginx(tmp_path, name):
    text = (SNIPPETS / f"{name}.lua").read_text()
    # Empty matches split off what they stand before, and UTF-8 is stepped over by whole characters; the compiler of
    # expressions has words of its own.
    allowed = {"cjson": set(), "codecs": set(), "modules": {"split17", "split19", "split30", "split25"}}[name]
    theirs, ours = library.Both(tmp_path).run(text)
    assert library.differences(theirs, ours, allowed) == {}
