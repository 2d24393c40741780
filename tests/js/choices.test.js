// What is chosen in a view: the address that it leaves, what it takes from there, and the commands of the page.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const place = { search: "", pathname: "/", href: "http://localhost/" };
Object.assign(globalThis, {
  location: place,
  history: {
    state: null,
    replaceState: (_, __, { search, href }) => Object.assign(place, { search, href }),
  },
  window: { addEventListener: () => {}, removeEventListener: () => {} },
});
const { inAddress, toAddress } = await import("../../gptviz/components/kit/address.js");
const { Choices, Commands } = await import("../../gptviz/components/kit/choices.js");
const { textOf, valueIn } = await import("../../gptviz/components/kit/values.js");

const NAMES = ["embed", "blocks.0.mlp"];
const DECLARED = {
  block: { whole: [0, 3], usual: 1 },
  heads: { names: ["one", "all"], pairs: [4, 4, 16], usual: "one" },
  query: { whole: [0, 9], usual: null },
  log: { switch: true, usual: false },
  share: { real: [0, 1], usual: 0.5 },
  pinned: { at: { names: NAMES, below: 9, most: 9 }, usual: null },
  groups: { groups: { names: NAMES, below: 9, most: 9 }, usual: null },
};
const CHOSEN = {
  block: 2,
  heads: [
    [0, 2],
    [1, 1],
  ],
  query: 0,
  log: true,
  share: 1,
  pinned: ["embed@1", "blocks.0.mlp@8"],
  groups: [
    { name: "a b", members: ["embed@2", "embed@3"] },
    { name: "c", members: ["embed@4"] },
  ],
};

beforeEach(() => toAddress(Object.fromEntries(Object.keys(DECLARED).map((key) => [key, null]))));

/** The choices of a view that begins with the address. */
function begun(declared = DECLARED) {
  const choices = new Choices();
  choices.begin(declared);
  return choices;
}

/** What the address has of them. */
const address = () => Object.fromEntries(Object.keys(DECLARED).map((key) => [key, inAddress(key)]));

test("a text that the address has of a value is read as that value", () => {
  for (const [key, value] of Object.entries(CHOSEN)) assert.deepEqual(valueIn(DECLARED[key], textOf(value)), value, key);
});

test("a view begins with what is usual, and that leaves the address empty", () => {
  const choices = begun();
  const usual = { block: 1, heads: "one", query: null, log: false, share: 0.5, pinned: null, groups: null };
  assert.deepEqual(choices.values, usual);
  choices.write();
  assert.deepEqual(new Set(Object.values(address())), new Set([null]));
  choices.write(["block"]);
  assert.deepEqual([inAddress("block"), inAddress("log")], ["1", null], "what is named there all the same");
});

test("a link to what is chosen reopens it", () => {
  const choices = begun();
  Object.assign(choices.values, CHOSEN);
  choices.write();
  assert.equal(inAddress("heads"), "0.2 1.1");
  assert.equal(inAddress("groups"), "a b:embed@2 embed@3;c:embed@4");
  assert.deepEqual(begun().values, CHOSEN);
  choices.take({ block: null, heads: null, pinned: null });
  choices.write();
  assert.deepEqual([inAddress("block"), inAddress("heads"), inAddress("pinned"), inAddress("query")], [null, null, null, "0"]);
});

test("what is impossible is named, and what is usual stands in its place", () => {
  toAddress({ block: "9", query: "3", log: "perhaps" });
  const choices = new Choices();
  assert.deepEqual(choices.begin(DECLARED), [
    ["block", "9"],
    ["log", "perhaps"],
  ]);
  assert.deepEqual([choices.values.block, choices.values.query, choices.values.log], [1, 3, false]);
});

test("for another text what was chosen stays where it is possible, also while a key is not offered", () => {
  const choices = begun();
  Object.assign(choices.values, CHOSEN);
  const { share, ...others } = DECLARED;
  choices.fit({ ...others, block: { whole: [0, 1], usual: 0 } });
  assert.deepEqual(choices.values, { ...CHOSEN, block: 0 });
  choices.fit({ share, log: DECLARED.log });
  assert.equal(choices.values.share, 1);
});

test("a value that does not go with the others is refused", () => {
  const choices = new Choices(({ block, query }) => (query !== null && query < block ? "query" : null));
  choices.begin(DECLARED);
  assert.deepEqual(choices.take({ query: 2 }), []);
  assert.deepEqual(choices.take({ block: 3 }), [["query", "2"]]);
  assert.deepEqual([choices.values.block, choices.values.query], [3, null]);
});

test("a command is obeyed once, whichever of several views sees it first", () => {
  const [one, other] = [begun(), begun()];
  assert.deepEqual(one.asked({ number: 3, asked: { block: 2 } }), { block: 2 });
  assert.equal(other.asked({ number: 3, asked: { block: 2 } }), null);
  assert.equal(one.asked({ number: 0, asked: null }), null);
  other.take({ block: 2 });
  assert.deepEqual(one.asked({ number: 4, asked: { back: 3 } }).block, "1", "what was chosen before");
});

test("commands are each obeyed once", () => {
  const commands = new Commands();
  assert.deepEqual(
    [0, 3, 3, 0, 3, 4, 1].map((number) => commands.obey({ number, asked: { head: number } }, {})?.head),
    [undefined, 3, undefined, undefined, undefined, 4, 1],
  );
});

test("a command that takes another one back asks for what was chosen before that one", () => {
  const commands = new Commands();
  commands.obey({ number: 5, asked: { head: 1 } }, { head: 0, query: null });
  commands.obey({ number: 6, asked: { head: 2 } }, { head: 1, query: 7 });
  assert.deepEqual(commands.obey({ number: 7, asked: { back: 6 } }, { head: 2 }), { head: 1, query: 7 });
  assert.equal(commands.obey({ number: 7, asked: { back: 6 } }, { head: 1 }), null, "once");
  assert.deepEqual(commands.obey({ number: 8, asked: { back: 5 } }, { head: 1 }), { head: 0, query: null });
  assert.equal(commands.obey({ number: 9, asked: { back: 99 } }, {}), null, "one that this page has not seen");
});
