// The random number of each seed and place, as `uniform` in gptviz/generate/sampling.py has it: so a draw here is the app's.

const WORD = 0xffffffffffffffffn;
// BLAKE2b, RFC 7693: its first words, and the order in which each of its rounds reads the message.
const FIRST = [
  ...[0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n],
  ...[0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n],
];
const ORDERS = (
  "0123456789abcdef ea489fd61c02b753 b8c052fdae367194 7931dcbe265a40f8 905724afe1bc683d " +
  "2c6a0b834d75fe19 c51fed4a0763928b db7ec13950f4862a 6fe9b308c2d714a5 a2847615fb9e3cd0"
).split(" ");
const QUARTERS = ["048c", "159d", "26ae", "37bf", "05af", "16bc", "278d", "349e"];
const ROUNDS = 12;

/** The first 8 bytes of the hash of a short text (at most 128 bytes of ASCII), the first byte being the largest. @param {string} text */
function hash(text) {
  const message = Array(16).fill(0n);
  for (let i = 0; i < text.length; i++) message[i >> 3] |= BigInt(text.charCodeAt(i)) << BigInt(8 * (i % 8));
  const start = FIRST[0] ^ 0x01010008n; // no key, 8 bytes of hash
  const v = [start, ...FIRST.slice(1), ...FIRST];
  v[12] ^= BigInt(text.length);
  v[14] ^= WORD; // the last block
  const turn = (/** @type {bigint} */ x, /** @type {bigint} */ by) => ((x >> by) | (x << (64n - by))) & WORD;
  for (let round = 0; round < ROUNDS; round++) {
    const order = Array.from(ORDERS[round % 10], (digit) => message[Number.parseInt(digit, 16)]);
    for (const [i, quarter] of QUARTERS.entries()) {
      const [a, b, c, d] = Array.from(quarter, (digit) => Number.parseInt(digit, 16));
      for (const [added, first, second] of /** @type {const} */ ([
        [order[2 * i], 32n, 24n],
        [order[2 * i + 1], 16n, 63n],
      ])) {
        v[a] = (v[a] + v[b] + added) & WORD;
        v[d] = turn(v[d] ^ v[a], first);
        v[c] = (v[c] + v[d]) & WORD;
        v[b] = turn(v[b] ^ v[c], second);
      }
    }
  }
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigUint64(0, start ^ v[0] ^ v[8], true);
  return bytes.getBigUint64(0);
}

/** The number in [0, 1) that decides the token at `position`. @param {number} seed @param {number} position */
export function uniform(seed, position) {
  return Number(hash(`${seed} ${position} 0`) >> 11n) / 2 ** 53;
}
