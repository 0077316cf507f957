// Middleware for Express, and for anything with (req, res, next).

import { check, refusal, withoutIdentity } from "./check.js";
import { DoorwardError } from "./errors.js";

/** protect lets a request pass whose caller may do the action; without an action, one that
 * is signed in. Handlers find the caller in req.doorward. */
export function protect(client, action, { onRefused, ...options } = {}) {
	return async (req, res, next) => {
		try {
			req.doorward = await check(client, req, action, { ip: req.ip, ...options });
			withoutIdentity(req.headers);
		} catch (error) {
			if (!(error instanceof DoorwardError)) return next(error);
			if (onRefused) return onRefused(error, req, res, next);
			const { status, headers, body } = refusal(error);
			res.writeHead(status, headers);
			return res.end(body);
		}
		next();
	};
}
