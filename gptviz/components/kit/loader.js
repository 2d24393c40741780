// The script that Streamlit is given for every view: see arrival.js.

import { mounted } from "./arrival.js";

export default mounted;
