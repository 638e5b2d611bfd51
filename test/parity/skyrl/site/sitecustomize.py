"""Loaded at start by every Python that has this folder on PYTHONPATH.

Before Python 3.12 pydantic takes no `typing.TypedDict`, only that of typing_extensions, which is the same and more.
SkyRL takes the one of typing.
"""

import sys

if sys.version_info < (3, 12):
    import typing

    import typing_extensions

    typing.TypedDict = typing_extensions.TypedDict
