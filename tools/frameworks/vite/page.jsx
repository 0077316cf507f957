import { DoorwardProvider, SignedIn, SignInLink, UserButton } from "@doorward/react";

export const Page = ({ initialSession }) => (
	<DoorwardProvider initialSession={initialSession}>
		<SignedIn fallback={<SignInLink />}><UserButton /></SignedIn>
	</DoorwardProvider>
);
