-- The action "doorward" asks Doorward, at the address given, whether the request may do
-- the action in the variable txn.action.
--
-- If so, it sets the identity headers and the variable txn.allowed. A refusal is answered
-- as Doorward answers it; only a browser that opens a page, whose address haproxy.cfg has
-- put into txn.page, is redirected, to the login or to the step-up. Without an answer of
-- Doorward's it does nothing, and haproxy.cfg refuses the request with 503.

-- The headers that Doorward needs: credentials, where a browser's request comes from,
-- and whether it would open a WebSocket.
local forwarded = {
	"cookie", "authorization", "origin", "sec-fetch-site", "user-agent", "x-request-id",
	"upgrade", "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol",
}

local identity = { "x-auth-user", "x-auth-tenant", "x-auth-role", "x-auth-email", "x-auth-session", "x-auth-key", "x-auth-assertion", "x-auth-aal" }

-- The headers of a refusal that the client gets, beside status and body.
local returned = {
	"cache-control", "content-type", "ratelimit", "ratelimit-policy", "retry-after", "www-authenticate",
	"x-content-type-options", "x-request-id",
}

-- HAProxy counts the values of a header from 0.
local function values(headers, name)
	local all, from = {}, headers[name] or {}
	for i = 0, 100 do
		all[#all + 1] = from[i]
	end
	return all
end

local function question(txn)
	local sent, headers = txn.http:req_get_headers(), {}
	for _, name in ipairs(forwarded) do
		local all = values(sent, name)
		if #all > 0 then
			headers[name] = all
		end
	end
	-- What Doorward believes about the request: for policies, limits and the allowed
	-- addresses of keys. By the method it also refuses a request from a page of another
	-- origin when it would change something: the question itself is always GET.
	headers["x-forwarded-for"] = { txn.f:src() } -- needs --trusted-proxies
	headers["x-forwarded-host"] = { txn.f:req_fhdr("host") }
	headers["x-forwarded-uri"] = { txn.f:pathq() }
	headers["x-original-method"] = { txn.f:method() }
	return headers
end

local function refuse(txn, answer)
	local reply = txn:reply({ status = answer.status })
	for _, name in ipairs(returned) do
		for _, value in ipairs(values(answer.headers, name)) do
			reply:add_header(name, value)
		end
	end
	if txn.f:method() ~= "HEAD" then
		reply:set_body(answer.body)
	end
	txn:done(reply)
end

local function redirect(txn, to)
	local reply = txn:reply({ status = 302 })
	reply:add_header("location", to)
	reply:add_header("cache-control", "no-store")
	txn:done(reply)
end

local function allow(txn, answer)
	for _, name in ipairs(identity) do
		local all = values(answer.headers, name)
		if #all == 1 and all[1] ~= "" then
			txn.http:req_set_header(name, all[1])
		end
	end
	txn:set_var("txn.allowed", true)
end

-- The page to which a refused browser is redirected, if any. A 403 with the challenge of
-- RFC 9470 asks for a recent proof of identity.
local function redirect_target(answer)
	if answer.status == 401 then
		return "/login?"
	end
	local challenge = values(answer.headers, "www-authenticate")[1] or ""
	if answer.status == 403 and challenge:find("insufficient_user_authentication", 1, true) then
		return "/step-up?"
	end
end

core.register_action("doorward", { "http-req" }, function(txn, address)
	local answer = core.httpclient():get({
		url = "http://" .. address .. "/api/v2/access/check?action=" .. txn:get_var("txn.action"),
		headers = question(txn),
		timeout = 3000,
	})
	if answer.status == 200 then
		allow(txn, answer)
	elseif txn:get_var("txn.page") and redirect_target(answer) then
		redirect(txn, redirect_target(answer) .. txn:get_var("txn.page"))
	elseif values(answer.headers, "content-type")[1] == "application/problem+json" then
		refuse(txn, answer)
	end
end, 1)
