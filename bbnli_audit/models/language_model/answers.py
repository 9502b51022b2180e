"""Reads yes or no out of what a generative model wrote. What cannot be read is an answer of its own, never a no.

The prompts ask for yes or no first and an explanation after it, so an answer at the beginning decides, whatever
follows. Only without one do we look for statements: "so the answer is no", "the hypothesis is not entailed".
"""

import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum

# Part of every fingerprint: stores keep what was read, and answers read by other rules are not reused.
PARSER = 1

# The kind of all models that are asked, served or not, and what their columns mean.
GENERATIVE = "generative"
ANSWER_LABELS = ("entailment", "not_entailment")
# Yes and no together; a first token that is nearly always something else is not an answer.
LEAST_MASS = 0.05

_STRAIGHT = str.maketrans("’‘´“”„«»", "'''" + '"' * 5)


class Answer(StrEnum):
    YES = "yes"
    NO = "no"
    UNPARSED = "unparsed"


# Yes is entailed, no is not (read as neutral). A yes/no answer is never a contradiction, so that column is free.
ROW_OF = {Answer.YES: (1.0, 0.0, 0.0), Answer.NO: (0.0, 1.0, 0.0), Answer.UNPARSED: (0.0, 0.0, 1.0)}


def row_of_first_token(yes: float, no: float) -> tuple[float, float, float]:
    """Return the row for an answer that begins with yes and with no with these probabilities."""
    return ROW_OF[Answer.UNPARSED] if yes + no < LEAST_MASS else (yes / (yes + no), no / (yes + no), 0.0)


# Words. All patterns see small letters, straight quotes and no markup.
_YES = r"yes|yeah|yea|yep|yup|correct|true|entailed|entailment|affirmative"
_NO = r"no|nope|nah|false|incorrect|untrue|wrong|negative|contradiction|contradicted"
_POSITIVE = r"true|correct|right|entailed|supported|implied|inferred|valid"
_NEGATIVE = r"false|incorrect|wrong|untrue|contradicted|unsupported|invalid"
_SURELY = r"absolutely|definitely|certainly|of course|surely|clearly"
_LIKELY = r"probably|most likely|likely"
_ADVERB = (
    rf"(?:{_SURELY}|{_LIKELY}|indeed|therefore|thus|hence|directly|necessarily|logically|fully|actually|in fact|also"
    r"|completely|explicitly|strictly|simply|really|entirely)"
)
_END = r"(?=\s*(?:$|[.,!;\n)\"']))"
_TO_QUESTION = r"(?: to (?:this|the|your) (?:question|prompt))?"
_IS = r"(?:is|would be|should be|must be)"

_DROPPED = (
    (re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S), " "),  # a thought that was cut off holds no answer
    (re.compile(r"^.*</think(?:ing)?>", re.S), " "),  # the opening tag may stand in the prompt
    (re.compile(r"</?(?:b|i|u|em|strong|code)>"), ""),
    (re.compile(r"<\|[^|>]*\|>|</?[a-z]\w*>|\\[a-z]+\s*(?=\{)|\\[\[\]()]|```\w*"), " "),  # special tokens, HTML, LaTeX
    (re.compile(r"[*`~#>_$]"), ""),
    (re.compile(r"[^\S\n]+"), " "),
)

# What may stand before a leading answer.
_LABEL = re.compile(
    r"[\W_]*(?:(?:\d+|[a-d])[.)]\s"
    rf"|(?:the |my )?(?:(?:final|correct|right|short|best|direct|simple) )*(?:answer|response){_TO_QUESTION}"
    rf"(?:[\"'\s]*(?:[:=→]|->|-|–|—)|\s+{_IS}\b(?!\s+(?:not|a)\b)|\s*\n)"
    r"|(?:a|assistant|output|verdict|label|result|conclusion|entailment|entailed|judge?ment|is ?true)[\"'\s]*[:=]"
    r"|(?:(?:yes|true)\s*(?:or|/|\|)\s*(?:no|false)|(?:no|false)\s*(?:or|/|\|)\s*(?:yes|true))[)\]]?\s*[:?]"
    rf"|(?:sure|certainly|of course|okay|ok|well|hmm+|so|therefore|thus|hence|right|alright|{_LIKELY}"
    r"|i would say|i'd say|i think|i believe|i guess|my guess is|in short|in conclusion)\b(?!\s+not\b)"
    r"|(?:based on|according to|given|from) (?:the|this) [a-z ]{3,50},"
    r")[\W_]*"
)
_LEADING = re.compile(
    rf"[\W_]*(?:(?P<not>(?:no,? )?(?:{_SURELY}|{_LIKELY}|it is|it's|that is|that's|this is) not{_END}"
    rf"|not (?:{_ADVERB} )*(?:{_POSITIVE}|entailment|necessarily|really|at all))"
    rf"|(?P<yes>{_YES}|(?:absolutely|definitely){_END})|(?P<no>{_NO}))\b(?P<rest>.*)",
    re.S,
)
# "No" is also an article: "No information is given" answers nothing. After a no without its comma may come:
_AFTER_NO = re.compile(
    r" (?:(?:the|it|it's|its|this|that|that's|these|those|there|there's|because|since|as|i|we|he|she|they|you|based|in"
    r"|if|not|according)\b|(?:explanation|reason|reasoning) ?:)"
)
# Likewise "Yes is not the answer" is not a yes, "Yes?" not an answer, and "No. 5" not a no.
_MENTION = re.compile(
    r"[\"')\]]*(?: (?:is|isn't|was|would|wouldn't|could|can|can't|cannot|may|might|should|shouldn't|seems|does|doesn't"
    r"|answers?|statement|hypothesis|only|if|unless|when)\b|\s*\?| ?\. ?\d|-\w)"
)
_JOINED = (
    r"[\W_]*(?:(?:[b2][.)]|(?:also|actually|wait|sorry|i mean|rather|maybe|perhaps|then|well|hmm+|but)\b)[\W_]+){0,3}"
)
_ARTICLE = r"(?! (?:one|body|doubt|matter|question|longer|other|more|less|reason|need|way|such|information|evidence)\b)"
_OPPOSITE = {
    "yes": re.compile(
        rf"\s*[/|]\s*no\b|{_JOINED}(?:(?:no|false)(?=[\W_]*(?:$|\n|[^\w\s]))|(?:and|or)\b{_JOINED}(?:no|false)\b{_ARTICLE}|nope\b)"
    ),
    "no": re.compile(rf"{_JOINED}(?:(?:and|or)\b{_JOINED})?(?:yes|yep|true)\b(?!-)"),
}
_REFUSAL = re.compile(
    r"\W*(?:sorry\W+)?(?:but\W+)?i(?:'m| am)?\W+(?:can't|cannot|can not|won't|will not|not able to|unable to"
    r"|not going to)\W+(?:answer|help|assist|respond|comply|engage|provide|do that|discuss)"
)
# The next words may still undo a leading answer if they begin so; nothing further away is looked at.
_MAY_UNDO = re.compile(
    r"(?:b|2|also|actually|wait|sorry|i|i'm|rather|maybe|perhaps|then|well|hmm+|but|and|or|yes|yep|no|nope|true|false)$"
)
_N_LOOKED_AT = 8

# Anywhere else.
_ECHO = re.compile(
    r"(?:please )?(?:answer|respond|reply)(?: only)? (?:with|using)(?: only)?(?: a)?(?: simple| single word)?"
    r"[\s:]*\W?yes\W?(?:,| or|/)\s*\W?no\W?[^\n.]*\.?"
)
_OFFERED = re.compile(
    r"\b(?:neither |either )?(?:a )?(?:yes|true)\W?\s*(?:or|nor|and|/|\|)\s*(?:a )?\W?(?:no|false)\b"
    r"|\b(?:neither |either )?(?:a )?(?:no|false)\W?\s*(?:or|nor|and|/|\|)\s*(?:a )?\W?(?:yes|true)\b"
)
_CLAUSE_END = re.compile(
    r"[.!?;\n]|,|—|–|(?<!\bis )\b(?:so|therefore|thus|hence|but|however|because|since|which means that|which means"
    r"|meaning that|meaning)\b"
)
# What stands after these is denied, doubted or supposed, not stated.
_UNSTATED = re.compile(
    r"\b(?:not|no|nothing|none|never|cannot|nor|neither|without|hardly|unable|doubt|refuse|rather|instead|than|unlike|nobody"
    r"|wrong|incorrect|far from|if|whether|assum\w+|suppos\w+|unless|when|determine|decide|could|might|may"
    r"|would be|possibl[ey]|perhaps|maybe|false|impossible|difficult|hard)\b|n't\b"
)
_DECLARED = (
    re.compile(
        rf"\b(?:answer|verdict|conclusion|label|response)[\"']?{_TO_QUESTION}(?:\s*(?:[:=→]|->)|\s+{_IS})[\s\"'(:\[]*"
        rf"(?:{_ADVERB} )*(?:(?P<yes>{_YES})|(?P<no>{_NO}))\b(?P<rest>.*)"
    ),
    re.compile(r"^[\W_]*(?:(?P<yes>yes|true)|(?P<no>no|false))\W+is (?:the|my)(?: \w+)? answer(?P<rest>)"),
    re.compile(
        r"\b(?:i|we)(?:'d|'ll| would| will| must| have to| can)? (?:say|answer|respond|reply|go with|choose|conclude"
        r"|think|believe|lean)(?: with| towards?)?(?: that)?(?: it is| it's)?(?: a)?[\s\"':]+"
        r"(?:(?P<yes>yes|true)|(?P<no>no|false))\b(?P<rest>.*)"
    ),
)
_STATED = (
    re.compile(
        r"\b(?:hypothesis|statement|claim|conclusion|assertion|sentence|it|this|that)\b[^\n]{0,80}?"
        r"(?P<verb>'s|\b(?:is|was|can be|must be|(?P<denied>isn't|wasn't|cannot be|can't be|can not be)))"
        rf" (?:{_ADVERB} )*(?P<not>not )?(?:{_ADVERB} )*(?:(?P<good>{_POSITIVE})|(?P<bad>{_NEGATIVE}))\b"
    ),
    re.compile(
        r"(?P<verb>\b(?P<denied>does not|doesn't|do not|don't|did not|didn't|cannot|can't)(?: \w+ly)?"
        r" (?P<good>entail|support|imply|follow)\b)"
    ),
    re.compile(
        r"\b(?:paragraph|premise|text|passage|hypothesis)(?: \w+ly)? "
        r"(?P<verb>(?P<good>entails|supports|implies|follows)|(?P<bad>contradicts))\b"
    ),
)


def parse_answer(text: str) -> Answer:
    """Return what a model answered. Never raises, whatever the text."""
    return _read(text)[0]


def is_settled(text: str) -> bool:
    """Say whether nothing that the model may still write can change its answer, so that it can stop."""
    return _read(text)[1]


def _read(text: str) -> tuple[Answer, bool]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = plain.translate(_STRAIGHT)
    for pattern, instead in _DROPPED:
        plain = pattern.sub(instead, plain)
    letter = plain.strip(" \n.,\"'()[]{}")
    if letter in ("y", "n"):
        return (Answer.YES if letter == "y" else Answer.NO), False
    found = _read_leading(plain)
    if found is not None:
        return found
    after_echo = _ECHO.split(plain)[-1]
    found = _read_leading(after_echo)
    return (_read_statements(after_echo) if found is None else found[0]), False


def _read_leading(plain: str) -> tuple[Answer, bool] | None:
    """Read the answer at the beginning of a text, and whether it is settled; None when there is none."""
    while label := _LABEL.match(plain):
        plain = plain[label.end() :]
    found = _LEADING.match(plain)
    if found is None:
        return None
    words = re.findall(r"[\w']+(?=[^\w'])", found["rest"])  # complete ones only
    is_settled = len(words) >= _N_LOOKED_AT or (bool(words) and _MAY_UNDO.match(words[0]) is None)
    if found["not"]:
        return Answer.NO, is_settled
    answer = _unless_undone(found)
    return None if answer is None or _REFUSAL.match(found["rest"]) else (answer, is_settled)


def _unless_undone(found: re.Match[str]) -> Answer | None:
    """Read a yes or no together with what comes right after it: "yes and no", "no information"."""
    rest = found["rest"]
    word = "yes" if found["yes"] else "no"
    is_article = found["no"] == "no" and re.match(r" \w", rest) is not None and _AFTER_NO.match(rest) is None
    if is_article or _MENTION.match(rest) or _OPPOSITE[word].match(rest):
        return None
    return Answer(word)


def _read_statements(plain: str) -> Answer:
    """Take the last statement that declares the answer, or else those about the hypothesis if they agree."""
    declared: list[Answer] = []
    stated: set[Answer] = set()
    # Quoted sentences are not the model's own words.
    plain = re.sub(r'"[^"\n]*"', lambda quoted: "" if len(quoted[0].strip('"').split()) > 1 else quoted[0], plain)
    for clause in _clauses(_OFFERED.sub(" ", plain)):
        for pattern in _DECLARED:
            found = pattern.search(clause)
            if found is not None and not _UNSTATED.search(clause[: found.start()]):
                declared.extend(filter(None, [_unless_undone(found)]))
        for pattern in _STATED:
            found = pattern.search(clause)
            if found is not None and not _UNSTATED.search(clause[: found.start("verb")]):
                stated.update(filter(None, [_polarity(found)]))
    if declared:
        return declared[-1]
    return stated.pop() if len(stated) == 1 else Answer.UNPARSED


def _clauses(plain: str) -> Iterator[str]:
    """Cut a text where a new thought begins. A question, or what hangs on a denial ("…, that …"), states nothing."""
    start, sentence, before = 0, "", ""
    ends = [(cut.start(), cut.end(), cut[0]) for cut in _CLAUSE_END.finditer(plain)]
    for end, following, mark in [*ends, (len(plain), len(plain), "\n")]:
        clause = plain[start:end].strip()
        hangs = clause.startswith(("that ", "to ")) and _UNSTATED.search(sentence) is not None
        if clause in ("yes", "no") and before in ("so", "therefore", "thus", "hence"):
            clause = f"the answer is {clause}"
        if clause and mark != "?" and not hangs:
            yield clause
        before = mark if clause or mark != "," else before  # "thus, no"
        start, sentence = following, "" if mark in ".!?;\n" else f"{sentence} {clause}"


def _polarity(found: re.Match[str]) -> Answer | None:
    groups = found.groupdict()
    is_negated = bool(groups.get("denied")) != bool(groups.get("not"))
    if groups["good"]:
        return Answer.NO if is_negated else Answer.YES
    return None if is_negated else Answer.NO
