// The colours by role, those of gptviz/figures/kit/theme.py.

export const ROLES = {
  query: "#0077BB",
  key: "#EE7733",
  value: "#009988",
  pattern: "#EE3377",
  mlp: "#33BBEE",
  output: "#CC3311",
  stream: "#8A8F98",
  weight: "#997700",
};

/** @typedef {keyof typeof ROLES} Role */
