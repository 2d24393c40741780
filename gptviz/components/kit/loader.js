// What Streamlit is given as the script of every view: see arrival.js.

import { mounted } from "./arrival.js";

export default mounted;
