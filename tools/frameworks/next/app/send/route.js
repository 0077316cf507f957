import { DoorwardError } from "@doorward/client";
import { check, refusal } from "@doorward/client/check";
import { doorward } from "../doorward.js";

export async function POST(request) {
	try {
		const { email } = await check(doorward, request, "message.send");
		return Response.json({ email });
	} catch (error) {
		if (!(error instanceof DoorwardError)) throw error;
		const { body, ...answer } = refusal(error);
		return new Response(body, answer);
	}
}
