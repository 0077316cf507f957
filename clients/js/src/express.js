// Middleware for Express, and for anything with (req, res, next).

import { check, optionsOf } from "./check.js";
import { DoorwardError } from "./errors.js";
import { addressFor, removeIdentity } from "./incoming.js";
import { refusal } from "./refusal.js";

/** protect lets a request pass if its caller may do the action or, without an action, is signed
 * in. Handlers find the caller in req.doorward. */
export function protect(client, action, { onRefused = answer, ...checkOptions } = {}) {
	const options = optionsOf(client, checkOptions);
	return async (req, res, next) => {
		try {
			req.doorward = await check(client, req, action, { ip: addressFor(options, req.ip, req), ...options });
			removeIdentity(req);
		} catch (error) {
			if (!(error instanceof DoorwardError)) return next(error);
			try {
				return await onRefused(error, req, res, next);
			} catch (fault) {
				return next(fault); // Express 4 doesn't wait for promises
			}
		}
		next();
	};
}

function answer(error, req, res) {
	const { status, headers, body } = refusal(error);
	res.writeHead(status, headers).end(body);
}
