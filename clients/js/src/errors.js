// What a call rejects with. Only an answer that is Doorward's own problem counts as a
// decision: a 401 from another program at its address says nothing about the credential.

/** DoorwardError is a problem (RFC 9457). code is stable; new codes may be added, so
 * treat one that you don't know by its class. */
export class DoorwardError extends Error {
	constructor(problem, options) {
		super(messageOf(problem), options);
		this.name = this.constructor.name;
		this.problem = problem;
		this.status = problem.status;
		this.code = problem.code;
		this.requestId = problem.requestId;
		this.errors = problem.errors ?? [];
		this.retryAfter = options?.retryAfter;
	}
}

/** messageOf returns the text with what is wrong in each member, so that a log says it. */
function messageOf({ detail, title, code, errors = [] }) {
	return [detail ?? title ?? code, ...errors.map(({ pointer, parameter, message }) => `${pointer ?? parameter}: ${message}`)].join("\n");
}

/** Malformed is 400, 405, 413, 415 and 428: a defect of the program that calls. */
export class Malformed extends DoorwardError {}
/** Unauthenticated is 401: there is no valid credential. */
export class Unauthenticated extends DoorwardError {}
/** Forbidden is 403: the caller is known, and may not do it. */
export class Forbidden extends DoorwardError {}
/** StepUpRequired is 403 step_up_required: the person must prove their identity again. */
export class StepUpRequired extends Forbidden {}
/** SecondFactorRequired is 403 with the code mfa_required or mfa_enrolment_required. */
export class SecondFactorRequired extends Forbidden {}
/** NotFound is 404: absent, or in another tenant. */
export class NotFound extends DoorwardError {}
/** Conflict is 409 and 412: the state doesn't allow it. */
export class Conflict extends DoorwardError {}
/** Gone is 410: it was valid once. */
export class Gone extends DoorwardError {}
/** Invalid is 422: errors says which members. */
export class Invalid extends DoorwardError {}
/** RateLimited is 429: retryAfter says after how many seconds to try again. */
export class RateLimited extends DoorwardError {}
/** Unavailable is everything else: Doorward is down, slow or can't answer now, or something
 * else answers at its address. It says nothing about the credential, so its status is always
 * 503. */
export class Unavailable extends DoorwardError {
	constructor(problem, options) {
		super({ code: "unavailable", ...problem, status: 503 }, options);
	}
}

const classesByStatus = {
	400: Malformed, 405: Malformed, 413: Malformed, 415: Malformed, 428: Malformed,
	401: Unauthenticated, 403: Forbidden, 404: NotFound, 409: Conflict, 412: Conflict,
	410: Gone, 422: Invalid, 429: RateLimited,
};
const classesByCode = { step_up_required: StepUpRequired, mfa_required: SecondFactorRequired, mfa_enrolment_required: SecondFactorRequired };

/** errorOf returns the error for an answer that is no success. */
export function errorOf(response, problem) {
	const retryAfter = secondsOf(response.headers.get("retry-after") ?? "");
	const options = retryAfter === undefined ? {} : { retryAfter };
	const isProblem = (response.headers.get("content-type") ?? "").startsWith("application/problem+json");
	if (!isProblem || typeof problem?.code !== "string" || problem.status !== response.status) {
		return new Unavailable({ detail: `Something that isn't Doorward answers with ${response.status}.` }, options);
	}
	return new (classesByCode[problem.code] ?? classesByStatus[response.status] ?? Unavailable)(problem, options);
}

/** secondsOf reads Retry-After, as seconds or as a date (RFC 9110, section 10.2.3). */
function secondsOf(text) {
	if (/^[0-9]{1,9}$/.test(text)) return Number(text);
	const at = text.endsWith(" GMT") ? Date.parse(text) : NaN;
	return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000));
}
