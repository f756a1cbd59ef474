"""Tokyo Cabinet itself, by its library: a table on disk, and the functions of misc on it."""

import ctypes
import ctypes.util
import os

import pytest


def library():
    """The library, with the types of the functions used."""
    name = ctypes.util.find_library("tokyocabinet") or "libtokyocabinet.so.9"
    try:
        loaded = ctypes.CDLL(name)
    except OSError:
        assert os.environ.get("CI") != "true", "tokyocabinet-bin must be installed"
        pytest.skip("tokyocabinet-bin is not installed")
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, *arguments in [
        ("tcadbnew", pointer),
        ("tcadbdel", None, pointer),
        ("tcadbopen", ctypes.c_bool, pointer, text),
        ("tcadbclose", ctypes.c_bool, pointer),
        ("tcadbmisc", pointer, pointer, text, pointer),
        ("tclistnew", pointer),
        ("tclistdel", None, pointer),
        ("tclistpush", None, pointer, text, number),
        ("tclistnum", number, pointer),
        ("tclistval", pointer, pointer, number, ctypes.POINTER(number)),
    ]:
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


class Cabinet:
    """A table of Tokyo Cabinet."""

    def __init__(self, path):
        self.library = library()
        self.database = self.library.tcadbnew()
        assert self.library.tcadbopen(self.database, f"{path}.tct".encode())

    def close(self):
        self.library.tcadbclose(self.database)
        self.library.tcadbdel(self.database)

    def misc(self, name, *arguments):
        """Returns the list, or None on failure."""
        given = self.library.tclistnew()
        for text in arguments:
            self.library.tclistpush(given, text, len(text))
        found = self.library.tcadbmisc(self.database, name.encode(), given)
        self.library.tclistdel(given)
        if not found:
            return None
        size, items = ctypes.c_int(), []
        for place in range(self.library.tclistnum(found)):
            start = self.library.tclistval(found, place, ctypes.byref(size))
            items.append(ctypes.string_at(start, size.value))
        self.library.tclistdel(found)
        return items
