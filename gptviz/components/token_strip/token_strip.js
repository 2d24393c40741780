// Tokens as chips. Text from a model is set by textContent alone.

import { make } from "../kit/elements.js";
import { SPOKEN, percent, spoken } from "../kit/text.js";
import { view } from "../kit/view.js";

const LABEL = 0,
  PROBABILITY = 1,
  ALTERNATIVES = 2,
  NOTE = 3,
  MARK = 4,
  FAINT = 5;
// The ends of the tint's scale, in percent of the role's colour: text stays readable on either, in light and dark.
const LOWEST = 6,
  HIGHEST = 62;
// A word longer than this may be broken, so that a text without spaces still wraps.
const LONGEST_WORD = 24;
const HIDE_AFTER = 150;

function tint(element, probability) {
  element.style.setProperty("--tint", `${LOWEST + (HIGHEST - LOWEST) * probability}%`);
}

/** Name, bar and number: a line of a card or of a list. */
function fillLine(line, label, probability) {
  const name = make("span", "name", label);
  tint(name, probability);
  const track = make("span", "track");
  const fill = make("div", "fill");
  fill.style.width = `${100 * probability}%`;
  track.append(fill);
  line.append(name, track, make("span", "number", percent(probability)));
}

function same(a, b) {
  return (
    a[LABEL] === b[LABEL] &&
    a[PROBABILITY] === b[PROBABILITY] &&
    a[NOTE] === b[NOTE] &&
    a[MARK] === b[MARK] &&
    a[FAINT] === b[FAINT] &&
    a[ALTERNATIVES].length === b[ALTERNATIVES].length &&
    a[ALTERNATIVES].every((pair, i) => pair[0] === b[ALTERNATIVES][i][0] && pair[1] === b[ALTERNATIVES][i][1])
  );
}

/** The payload of this view is JSON alone: its tokens are packed once, however often they are sent. */
function parsed(data) {
  const { tokens, settings } = JSON.parse(new TextDecoder().decode(data));
  return { ...settings, tokens };
}

class Strip {
  constructor(root) {
    this.root = root;
    this.tokens = [];
    this.chips = [];
    this.current = 0; // the chip that the Tab key reaches
    this.opened = null; // the chip whose card is open
    this.data = {};
    this.following = true; // the strip stays at its end while it grows
    this.text = make("div", "strip");
    this.text.setAttribute("role", "group");
    this.legend = make("div", "legend");
    this.meaning = make("span", "");
    this.legend.append(make("span", "", "0 %"), make("span", "scale"), make("span", "", "100 %"), this.meaning);
    this.card = make("div", "card floating");
    this.card.id = "card";
    this.card.popover = "manual"; // above everything, cut off by nothing
    root.replaceChildren(this.text, this.legend, this.card);
    root.style.setProperty("--lowest", `${LOWEST}%`);
    root.style.setProperty("--highest", `${HIGHEST}%`);

    this.text.addEventListener("pointerover", (event) => this.over(event));
    this.text.addEventListener("pointerleave", () => this.closeSoon());
    this.text.addEventListener("focusin", (event) => this.focused(event));
    this.text.addEventListener("focusout", () => this.closeSoon());
    this.text.addEventListener("click", (event) => this.clicked(event));
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.text.addEventListener("scroll", () => {
      this.close();
      this.following = this.text.scrollHeight - this.text.scrollTop - this.text.clientHeight < 24;
    });
    this.card.addEventListener("pointerenter", () => clearTimeout(this.closing));
    this.card.addEventListener("pointerleave", () => this.closeSoon());
  }

  /** Bring the page in line with `data`; chips that did not change are left alone. */
  show(data) {
    const before = this.data;
    this.data = data;
    const { text, root } = this;
    root.style.setProperty("--role", data.colour);
    root.classList.toggle("picks", data.picks);
    text.classList.toggle("bars", data.bars);
    text.classList.toggle("framed", data.height !== null);
    text.classList.toggle("spaced", data.spaced);
    text.style.height = data.height === null ? "" : `${data.height}px`;
    text.setAttribute("aria-label", data.label);

    const grew = data.tokens.length > this.tokens.length;
    const focused = this.chips.indexOf(text.getRootNode().activeElement);
    this.change(data.tokens, before.bars !== data.bars);
    if (focused >= 0 && !this.chips.includes(text.getRootNode().activeElement))
      this.focus(Math.min(focused, this.chips.length - 1));

    this.legend.hidden = !data.legend || data.bars || !data.tokens.some((token) => token[PROBABILITY] !== null);
    this.meaning.textContent = data.legend;
    this.chips.forEach((chip, i) => {
      chip.classList.toggle("selected", i === data.selected);
      if (data.picks) chip.setAttribute("aria-pressed", i === data.selected);
      else chip.removeAttribute("aria-pressed");
    });
    if (data.selected !== null && (data.selected !== before.selected || data.generation !== before.generation)) {
      this.reach(data.selected);
      this.bringIntoView(this.chips[data.selected]);
    } else if (data.selected === null) {
      this.following ||= before.selected != null;
      // Not under an open card: who reads it would lose its chip.
      if (grew && this.following && this.opened === null) text.scrollTop = text.scrollHeight;
    }
    this.reach(this.current);
    if (this.opened !== null && this.opened >= this.chips.length) this.close();
  }

  /** Keep the chips up to the first that differs, make the rest anew. */
  change(tokens, all) {
    let kept = 0;
    if (!all) while (kept < tokens.length && kept < this.tokens.length && same(tokens[kept], this.tokens[kept])) kept++;
    if (this.opened !== null && this.opened >= kept) this.close();
    for (const chip of this.chips.splice(kept)) {
      while (chip.nextSibling) chip.nextSibling.remove();
      const word = chip.parentElement;
      chip.remove();
      if (word && !word.hasChildNodes()) word.remove();
    }
    this.tokens = tokens;
    for (let i = kept; i < tokens.length; i++) this.append(i);
  }

  append(i) {
    const token = this.tokens[i];
    const chip = this.chipOf(token, i);
    let word = this.text.lastElementChild;
    const last = i > 0 ? this.tokens[i - 1][LABEL] : "";
    const wordEnds = /[␣⏎⇥]$/.test(last) || /^[␣⏎⇥]/.test(token[LABEL]);
    if (
      !word ||
      this.data.spaced ||
      (wordEnds && !(token[LABEL] in SPOKEN)) ||
      this.data.bars ||
      word.textContent.length > LONGEST_WORD ||
      token[LABEL].length > LONGEST_WORD
    ) {
      word = make("span", "word");
      this.text.append(word);
    }
    word.append(chip);
    if (token[LABEL].endsWith("⏎") && !this.data.bars) word.append(document.createElement("br"));
    this.chips.push(chip);
  }

  chipOf(token, i) {
    const chip = make("button", "chip");
    chip.dataset.index = i;
    chip.tabIndex = -1;
    chip.classList.toggle("prompt", token[PROBABILITY] === null);
    chip.classList.toggle("mark", Boolean(token[MARK]));
    chip.classList.toggle("faint", Boolean(token[FAINT]));
    chip.classList.toggle("blank", !this.data.bars && token[LABEL] in SPOKEN);
    if (this.data.bars) {
      fillLine(chip, token[LABEL], token[PROBABILITY] ?? 0);
      chip.title = token[NOTE]; // a card would cover the next lines
    } else {
      chip.textContent = token[LABEL];
      if (token[PROBABILITY] !== null) tint(chip, token[PROBABILITY]);
    }
    const words = [spoken(token[LABEL])];
    if (token[PROBABILITY] !== null) words.push(percent(token[PROBABILITY]));
    if (token[NOTE]) words.push(token[NOTE]);
    chip.setAttribute("aria-label", words.join(", "));
    return chip;
  }

  bringIntoView(chip) {
    if (!chip) return;
    // Not scrollIntoView, which would move the whole page.
    const { text } = this;
    const top = chip.getBoundingClientRect().top - text.getBoundingClientRect().top;
    if (top < 0) text.scrollTop += top - 8;
    else if (top + chip.offsetHeight > text.clientHeight) text.scrollTop += top + chip.offsetHeight - text.clientHeight + 8;
  }

  /** Make chip `i` the one that the Tab key reaches. */
  reach(i) {
    const old = this.chips[this.current];
    if (old) old.tabIndex = -1;
    this.current = Math.max(0, Math.min(i, this.chips.length - 1));
    if (this.chips[this.current]) this.chips[this.current].tabIndex = 0;
  }

  focus(i) {
    this.reach(i);
    const chip = this.chips[this.current];
    if (!chip) return;
    chip.focus({ preventScroll: true });
    this.bringIntoView(chip);
  }

  index(event) {
    const chip = event.target.closest(".chip");
    return chip ? Number(chip.dataset.index) : null;
  }

  over(event) {
    const i = this.index(event);
    if (i === null) this.closeSoon();
    else this.open(i);
  }

  focused(event) {
    const i = this.index(event);
    if (i === null) return;
    this.reach(i);
    this.open(i);
  }

  clicked(event) {
    const i = this.index(event);
    if (i !== null && this.data.picks) this.send("pick", { at: i, generation: this.data.generation });
  }

  key(event) {
    const i = this.index(event);
    if (i === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const walk = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: this.chips.length - 1 };
    if (event.key in walk) this.focus(walk[event.key]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.focus(this.onNextLine(i, event.key === "ArrowDown"));
    else if (event.key === "Escape") this.close();
    else if (event.key !== "Enter" && event.key !== " ") return;
    else {
      // A chip is a button: the browser turns these into a click; the page's own keys must not see them.
      event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** The chip below or above chip `i` that is nearest to it; `i` where there is none. */
  onNextLine(i, down) {
    const from = this.chips[i].getBoundingClientRect();
    const middle = from.left + from.width / 2;
    let best = i,
      distance = Infinity,
      line = null;
    for (let j = i; j >= 0 && j < this.chips.length; j += down ? 1 : -1) {
      const at = this.chips[j].getBoundingClientRect();
      if (Math.abs(at.top - from.top) < from.height / 2) continue;
      line ??= at.top;
      if (Math.abs(at.top - line) > at.height / 2) break;
      const away = Math.abs(at.left + at.width / 2 - middle);
      if (away < distance) [best, distance] = [j, away];
    }
    return best;
  }

  open(i) {
    clearTimeout(this.closing);
    if (i === this.opened) return;
    this.close();
    const [label, probability, alternatives, note] = this.tokens[i];
    if (probability === null && !note && !alternatives.length) return;
    if (this.data.bars && !alternatives.length) return;
    const head = make("div", "head");
    head.append(make("span", "name", label));
    if (probability !== null) head.append(make("span", "number", percent(probability)));
    const list = make("div", "alternatives");
    for (const [other, likely] of alternatives) {
      const line = make("div", "alternative");
      line.classList.toggle("taken", other === label);
      fillLine(line, other, likely);
      list.append(line);
    }
    this.card.replaceChildren(head);
    if (note) this.card.append(make("div", "note", note));
    if (alternatives.length) this.card.append(list);
    this.opened = i;
    this.chips[i].classList.add("open");
    this.chips[i].setAttribute("aria-describedby", "card");
    this.card.classList.add("open");
    this.card.showPopover?.();
    this.place(this.chips[i].getBoundingClientRect());
  }

  /** Under the chip without a gap, so that the pointer reaches it; above where there is no room. */
  place(chip) {
    const { offsetWidth: width, offsetHeight: height } = this.card;
    const left = Math.max(8, Math.min(chip.left, innerWidth - width - 8));
    const above = chip.bottom + height > innerHeight - 4 && chip.top - height > 4;
    this.card.style.left = `${left}px`;
    this.card.style.top = `${above ? chip.top - height : Math.min(chip.bottom, innerHeight - height - 4)}px`;
  }

  closeSoon() {
    clearTimeout(this.closing);
    this.closing = setTimeout(() => this.close(), HIDE_AFTER);
  }

  close() {
    clearTimeout(this.closing);
    if (this.opened === null) return;
    const chip = this.chips[this.opened];
    chip?.classList.remove("open");
    chip?.removeAttribute("aria-describedby");
    this.opened = null;
    if (this.card.matches(":popover-open")) this.card.hidePopover();
    this.card.classList.remove("open");
  }
}

export default view(Strip, parsed);
