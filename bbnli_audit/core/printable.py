"""Makes text from outside safe to show: names of models, versions, folders, notes. Standard library only.

A line break, an escape sequence or a workflow command in a name must not act on the terminal or on a CI service.
"""

import re
import unicodedata

# Unicode categories: control characters; formatting characters, which can reverse the direction of text around them;
# lone surrogates, which UTF-8 cannot encode; separators of lines and paragraphs.
_UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_SPACES = re.compile(r"[\r\n\t\v\f\x85\u2028\u2029]+")
# Texts that a CI service takes for a command. GitHub: `::` at the start of a line, or `##[` anywhere in it. Azure:
# `##vso[`. TeamCity: `##teamcity[`.
_COMMAND = re.compile(r"^(\s*:):|##(?=\w*\[)")


def printable(text: str) -> str:
    """Put a text on one line. Breaks and tabs become spaces; other unprintable characters become U+FFFD."""
    if text.isprintable():
        return text
    text = _SPACES.sub(" ", text)
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in _UNPRINTABLE else c for c in text)


def printable_line(text: str) -> str:
    """Put a text on one line, as `printable` does, and change it so that no CI service finds a command in it."""
    return _COMMAND.sub(lambda found: f"{found[1]} :" if found[1] else "# #", printable(text))


def printable_lines(text: str) -> str:
    """Make each line of a message safe to print. Line breaks stay."""
    return "\n".join(map(printable_line, text.split("\n")))
