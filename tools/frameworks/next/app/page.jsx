import { RequirePermission, SignedIn, SignInLink, UserButton } from "@doorward/react";

export default function Page() {
	return (
		<SignedIn fallback={<SignInLink />}>
			<UserButton />
			<RequirePermission action="user.invite">invite somebody</RequirePermission>
		</SignedIn>
	);
}
