// What the map asks of the server: the numbers of the tensor that is open.

// Milliseconds after which a question counts as lost.
const PATIENCE = 5_000;

/**
 * Asks one question at a time. When runs of the script interrupt each other, Streamlit may believe that a browser knows a message
 * which it never got, and the connection ends. What is opened meanwhile is asked for once the answer has come.
 */
export class Questions {
  /** @param {(question: string) => void} send @param {() => number} now the time in milliseconds */
  constructor(send, now = () => performance.now()) {
    this.send = send;
    this.now = now;
    this.asked = "";
    this.until = 0; // the end of the wait for an answer
    this.isShut = false; // whether the server was told that nothing is open
  }

  /** A payload has come, perhaps with an answer. @param {{ opened: unknown }} data */
  hear(data) {
    if (JSON.stringify(data.opened) === this.asked) this.until = 0;
  }

  /** The server was told that the box is closed: it has to be told of the next one that is opened. */
  shut() {
    this.isShut = true;
    this.until = 0;
  }

  /**
   * Tell the server what is open, and ask for its numbers, unless it knows and they are here.
   *
   * @param {import("./opened.js").Opened} opened
   * @param {Pick<import("./boxes.js").Payload, "opened" | "tensor">} data
   */
  ask(opened, data) {
    const { box, piece, at } = { box: opened.path, piece: opened.piece, at: opened.at };
    const isHere = !opened.tensor || (data.tensor && opened.isOf(data.tensor));
    const isKnown = data.opened?.[0] === box && (opened.head === null || data.opened[2][0] === opened.head);
    const asked = JSON.stringify([box, piece, at]);
    const isAnswered = JSON.stringify(data.opened) === asked; // as well as the server can
    if (!this.isShut && ((isHere && isKnown) || isAnswered || this.now() < this.until)) return;
    this.isShut = false;
    this.asked = asked;
    this.until = this.now() + PATIENCE;
    this.send(JSON.stringify({ box, piece, at }));
  }
}
