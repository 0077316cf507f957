// The answer to a refused request.

const titles = { 401: "Not signed in", 403: "Not allowed", 429: "Too many requests", 503: "Temporarily unavailable" };

/** refusal returns status, headers and body for a request that check has rejected. A fault is
 * 503 and not 401, so that people stay signed in while Doorward restarts. */
export function refusal(error) {
	const status = error.status in titles ? error.status : 503;
	const headers = { "content-type": "application/problem+json", "cache-control": "no-store", "x-content-type-options": "nosniff" };
	const challenge = challengeOf(status, error);
	if (challenge) headers["www-authenticate"] = challenge;
	if (status === 429 || status === 503) headers["retry-after"] = String(Math.max(1, Math.ceil(error.retryAfter ?? 1)));
	return { status, headers, body: JSON.stringify(problemOf(status, error)) };
}

function challengeOf(status, { code, problem }) {
	if (status === 401) return 'Bearer realm="doorward"';
	if (code !== "step_up_required" || typeof problem.acr !== "string" || !/^\w+$/.test(problem.acr)) return undefined;
	const age = Number.isInteger(problem.maxAge) ? `, max_age="${problem.maxAge}"` : ""; // RFC 9470
	return `Bearer realm="doorward", error="insufficient_user_authentication", acr_values="${problem.acr}"${age}`;
}

function problemOf(status, { problem }) {
	const title = titles[status];
	if (status === 503) {
		return { type: "about:blank", title, status, detail: "Doorward can't say now who is calling. Try again.", code: "unavailable", requestId: problem.requestId };
	}
	const { instance, ...rest } = problem; // instance is the path of the check, not of the request
	return { type: "about:blank", title, ...rest, status };
}
