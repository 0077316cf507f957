import { headers } from "next/headers";
import { currentSession } from "@doorward/client/check";
import { DoorwardProvider } from "@doorward/react";
import "@doorward/react/style.css";
import { doorward } from "./doorward.js";

export default async function Layout({ children }) {
	const initialSession = await currentSession(doorward, { headers: await headers() });
	return <html lang="en"><body><DoorwardProvider initialSession={initialSession}>{children}</DoorwardProvider></body></html>;
}
