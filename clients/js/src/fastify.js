// A hook for Fastify.

import { check, optionsOf } from "./check.js";
import { DoorwardError } from "./errors.js";
import { addressFor, removeIdentity } from "./incoming.js";
import { refusal } from "./refusal.js";

/** protect returns an onRequest hook that lets a request pass if its caller may do the action
 * or, without an action, is signed in. Handlers find the caller in request.doorward. */
export function protect(client, action, { onRefused, ...checkOptions } = {}) {
	const options = optionsOf(client, checkOptions);
	return async (request, reply) => {
		try {
			request.doorward = await check(client, request.raw, action, { ip: addressFor(options, request.ip, request.raw), ...options });
			removeIdentity(request.raw);
		} catch (error) {
			if (!(error instanceof DoorwardError)) throw error;
			if (onRefused) return onRefused(error, request, reply);
			const { status, headers, body } = refusal(error);
			return reply.code(status).headers(headers).send(body);
		}
	};
}
