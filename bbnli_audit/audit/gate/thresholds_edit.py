"""Changes values in the text of a threshold file, and leaves all other text as it is, comments included.

There is one exception: a list item that is replaced loses the comments on its lines. The module uses the positions of
YAML nodes in the text, and refuses a change that it cannot place. The caller reads the new text and checks that it has
the changes and no others. So an unforeseen layout leads to a message, never to a wrong limit.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from bbnli_audit.core.errors import ThresholdsError

if TYPE_CHECKING:
    import yaml

Entry: TypeAlias = "str | Mapping[str, Entry]"  # YAML source, or a mapping of keys to entries
STEP = 2


def set_values(text: str, where: tuple[str, ...], values: Mapping[str, str], name: str) -> str:
    """Write keys into the mapping that `where` leads to; add this mapping if it is missing. Values are YAML source."""
    import yaml

    for key, value in values.items():
        parent: Any = yaml.compose(text, Loader=yaml.SafeLoader)
        for depth, step in enumerate(where):
            found = _find(parent, step, name)
            if found is None:
                entry: Entry = values
                for below in reversed(where[depth + 1 :]):
                    entry = {below: entry}
                return _insert(text, parent, step, entry)
            parent = found[1]
        found = _find(parent, key, name)
        text = _insert(text, parent, key, value) if found is None else _replace(text, found, value, name)
    return text


def _find(parent: Any, key: str, name: str) -> "tuple[yaml.Node, yaml.Node] | None":
    """Return the nodes of a key and of its value; None if the key is missing."""
    for key_node, value in parent.value:
        if key_node.value == key:
            if value.start_mark.index < key_node.start_mark.index:
                raise _by_hand(name, key_node, f"{key} is an alias of a value elsewhere in the file")
            return key_node, value
    return None


def _replace(text: str, found: "tuple[yaml.Node, yaml.Node]", new: str, name: str) -> str:
    key, value = found
    start, end = value.start_mark.index, value.end_mark.index
    if text[start:end] != value.value and text[start] not in "\"'":
        raise _by_hand(name, key, f"{key.value} has an anchor, a tag or several lines")
    return text[:start] + new + text[end:]


def _insert(text: str, parent: Any, key: str, entry: Entry) -> str:
    if parent.flow_style:
        return _insert_flow(text, parent, f"{_spell(key)}: {_as_flow(entry)}")
    lines = _as_block({key: entry}, parent.value[0][0].start_mark.column)
    return _insert_lines(text, _line_after(text, parent), lines)


def _insert_lines(text: str, at: int, lines: Iterable[str]) -> str:
    """Insert lines, with the line ending of the file. If the line before `at` has no ending, it gets one first."""
    newline = "\r\n" if "\r\n" in text else "\n"
    before = text[:at] if at == 0 or text[at - 1] == "\n" else text[:at] + newline
    return before + "".join(line + newline for line in lines) + text[at:]


def _insert_flow(text: str, parent: Any, written: str) -> str:
    if not parent.value:
        at = parent.end_mark.index - 1
        return f"{text[:at]}{written}{text[at:]}"
    for key, _ in parent.value:
        if key.value == "reason":  # keep the reason last
            at = key.start_mark.index
            return f"{text[:at]}{written}, {text[at:]}"
    at = parent.value[-1][1].end_mark.index
    return f"{text[:at]}, {written}{text[at:]}"


def _line_after(text: str, node: Any) -> int:
    """Find the end of a block: the start of the line after its last entry. Comments after that entry stay behind it."""
    at = 0
    while isinstance(node.value, list) and node.value and not node.flow_style:
        last = node.value[-1]
        if isinstance(last, tuple):
            key, last = last
            at = key.end_mark.index  # YAML gives an alias the place of its anchor, which is earlier in the text
        node = last
    at = max(at, int(node.end_mark.index))
    if text[at - 1] == "\n":  # a block scalar (| or >) ends after its last line break
        return at
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline + 1


def _as_flow(entry: Entry) -> str:
    if isinstance(entry, str):
        return entry
    return "{" + ", ".join(f"{_spell(key)}: {_as_flow(below)}" for key, below in entry.items()) + "}"


def _as_block(entry: Mapping[str, Entry], column: int) -> list[str]:
    lines = []
    for key, below in entry.items():
        start = f"{' ' * column}{_spell(key)}:"
        if isinstance(below, str):
            lines.append(f"{start} {below}")
        else:
            lines += [start, *_as_block(below, column + STEP)]
    return lines


def quote(text: str) -> str:
    """Quote a text so that YAML reads back the same text, whatever characters it has."""
    import yaml

    return yaml.dump(text, default_style='"', allow_unicode=True, width=10**9).rstrip("\n")


def _spell(key: str) -> str:
    is_plain = key.replace("/", "").replace("_", "").replace("-", "").isalnum() and key[0].isalnum()
    return key if is_plain else quote(key)


def _by_hand(
    name: str, key: "yaml.Node", reason: str, advice: str = "Write a plain value on this line and try again"
) -> ThresholdsError:
    why = f"{reason}, so a change here is not safe"
    return ThresholdsError(f"{name}:{key.start_mark.line + 1}: {why}. {advice}, or change it by hand.")


def put_items(text: str, key: str, items: Mapping[int, str], name: str) -> str:
    """Put items (YAML source, each on one line) into the list under a key of the file.

    `items` maps a position in the list to the new item. An item replaces the old item at its position. Items whose
    position does not exist yet are added at the end.
    """
    import yaml

    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    found = _find(root, key, name)
    if found is None:
        return _insert_list(text, root, key, list(items.values()))
    key_node, node = found
    if not isinstance(node, yaml.SequenceNode) or node.flow_style:
        raise _by_hand(name, key_node, f"{key} is a list in brackets", "Write one item per line and try again")
    lines = {place: f"{' ' * node.start_mark.column}- {item}" for place, item in sorted(items.items())}
    n_old = len(node.value)
    text = _insert_lines(text, _line_after(text, node), [line for place, line in lines.items() if place >= n_old])
    for place in sorted((place for place in lines if place < n_old), reverse=True):
        item = node.value[place]
        start = text.rfind("\n", 0, item.start_mark.index) + 1
        text = _insert_lines(text[:start] + text[_line_after(text, item) :], start, [lines[place]])
    return text


def _insert_list(text: str, root: Any, key: str, items: list[str]) -> str:
    """Add a list as the last key of the file."""
    if root.flow_style:
        return _insert_flow(text, root, f"{key}: [{', '.join(items)}]")
    return _insert_lines(text, _line_after(text, root), [f"{key}:", *(f"{' ' * STEP}- {item}" for item in items)])
