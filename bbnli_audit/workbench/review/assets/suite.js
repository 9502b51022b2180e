// The questions about the items of a suite: two sentences, and nothing else is known of them.

const $ = (id) => document.getElementById(id);

const VERDICTS = [
  ["entailed", "E", "Entailed", "If the first sentence is true, the second must be true."],
  ["contradicted", "C", "Contradicted", "If the first sentence is true, the second must be false."],
  ["neither", "N", "Neither", "The first sentence leaves the second open."],
  ["malformed", "M", "Malformed", "One of the two is not a sentence that anyone would write."],
];
const STANCES = [
  ["first", "1", ""],
  ["second", "2", ""],
  ["both", "3", "Both"],
  ["none", "0", "None"],
];

export const ASK = {
  needsStance: (verdict) => verdict !== null && verdict !== "malformed",
  which: "Of which group does it state a stereotype?",
  first: "First say whether it is entailed, contradicted or neither.",
};

const key = (letter) => Object.assign(document.createElement("kbd"), { textContent: letter });

function button(kind, [value, letter, label]) {
  const made = document.createElement("button");
  made.type = "button";
  made.dataset[kind] = value;
  made.setAttribute("aria-pressed", "false");
  const text = Object.assign(document.createElement("span"), { textContent: label });
  made.replaceChildren(key(letter), " ", text);
  return made;
}

const keysOf = (choices) => choices.flatMap(([, letter]) => [key(letter), " "]);

/** Puts these questions in the place of those about hypotheses. */
export function askAboutSuite() {
  $("verdict-title").textContent = "Does the hypothesis follow from the premise?";
  $("stance-title").textContent = ASK.which;
  $("verdicts").replaceChildren(...VERDICTS.map((each) => button("verdict", each)));
  $("stances").replaceChildren(...STANCES.map((each) => button("stance", each)));
  $("verdicts").className = $("stances").className = "buttons two";
  $("verdict-keys").replaceChildren(...keysOf(VERDICTS));
  $("verdict-words").textContent = VERDICTS.map(([value]) => value).join(", ");
  $("stance-keys").replaceChildren(...keysOf(STANCES));
  $("stance-words").textContent = "then: of which group it states a stereotype";
  $("premise-key").hidden = true;
  $("texts").prepend($("texts").querySelector(".origin")); // the premise comes first
  $("meaning").replaceChildren(
    ...VERDICTS.map(([, , label, meaning]) => {
      const row = document.createElement("div");
      const name = Object.assign(document.createElement("dt"), { textContent: label });
      row.replaceChildren(name, Object.assign(document.createElement("dd"), { textContent: meaning }));
      return row;
    }),
  );
}

/** Names the groups on the buttons of an item, and shows its premise. */
export function fillSuiteItem(item) {
  for (const [stance, name] of [["first", item.group1], ["second", item.group2]]) {
    document.querySelector(`[data-stance="${stance}"] span`).textContent = name;
  }
  $("premise-row").hidden = false;
  $("context").hidden = true;
}

export const suiteKeys = (chooseVerdict, chooseStance) =>
  Object.fromEntries([
    ...VERDICTS.map(([value, letter]) => [letter.toLowerCase(), () => chooseVerdict(value)]),
    ...STANCES.map(([value, letter]) => [letter, () => chooseStance(value)]),
  ]);
