// A proxy that makes a Doorward look like a later version: it adds unknown members to every
// object of an answer, and an unknown header to every answer.
//
//	node future.mjs ADDRESS        prints its own address

import { createServer } from "node:http";

const [, , address] = process.argv;

function withNewMembers(value) {
	if (Array.isArray(value)) return value.map(withNewMembers);
	if (value === null || typeof value !== "object") return value;
	const members = Object.entries(value).map(([name, member]) => [name, withNewMembers(member)]);
	return { aNewMember: "first", ...Object.fromEntries(members), zNewMember: { list: [1, null, {}] } };
}

const server = createServer(async (request, response) => {
	const body = Buffer.concat(await request.toArray());
	const headers = Object.entries(request.headers).filter(([name]) => !/^(host|connection|content-length|accept-encoding)$/.test(name));
	const answer = await fetch(address + request.url, { method: request.method, headers, redirect: "manual", ...(body.length && { body }) });
	const text = await answer.text();
	const type = answer.headers.get("content-type") ?? "";
	for (const [name, value] of answer.headers) {
		if (!/^(connection|content-encoding|content-length|keep-alive|transfer-encoding)$/.test(name)) response.appendHeader(name, value);
	}
	response.writeHead(answer.status, { "x-new-header": "1" });
	response.end(/json/.test(type) ? JSON.stringify(withNewMembers(JSON.parse(text))) : text);
});
server.listen(0, "127.0.0.1", () => { console.log(`http://127.0.0.1:${server.address().port}`); });
