// Rendered with the React of the bundle: a second one beside the kit would fail.

import { renderToString } from "react-dom/server";
import { Page } from "./page.jsx";

const user = { id: "usr_1", email: "ann@acme.example", name: "Ann", tenantId: "tnt_1", tenantName: "Acme", permissions: [] };
const html = renderToString(<Page initialSession={{ user, session: {} }} />);
if (!html.includes("ann@acme.example")) throw new Error(html);
