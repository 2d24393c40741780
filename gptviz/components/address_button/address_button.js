// A button that tells Python what the page's address says.

import { inAddress } from "../kit/address.js";
import { make } from "../kit/elements.js";
import { View, view } from "../kit/view.js";

class AddressButton extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.button = make("button", "field press");
    root.replaceChildren(this.button);
  }

  /** @param {{ label: string, names: string[] }} payload */
  show({ label, names }) {
    this.button.textContent = label;
    this.button.onclick = () => {
      const said = names.map((name) => [name, inAddress(name)]).filter(([, value]) => value !== null);
      this.send("press", JSON.stringify(Object.fromEntries(said)));
    };
  }
}

export default view(AddressButton);
