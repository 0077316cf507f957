package doorward

// Code is the stable name of an error, the last part of its problem type.
type Code string

// Kind groups codes by kind of fault; the web floor maps it to a status.
type Kind int

// The kinds of errors.
const (
	KindInternal        Kind = iota // a defect in Doorward
	KindMalformed                   // the form of the request
	KindUnauthenticated             // no valid credential
	KindForbidden                   // known caller, refused
	KindNotFound                    // absent, or in another tenant
	KindConflict                    // the state doesn't allow it
	KindGone                        // was valid, has ended
	KindInvalid                     // the meaning of the request
	KindTooMany                     // too many requests
	KindUnavailable                 // temporarily unable to decide
	KindMethod                      // the method isn't one of the path's
	KindTooLarge                    // the body's size
	KindMediaType                   // the body's type
	KindPrecondition                // If-Match names another version
	KindUnconditional               // If-Match is missing
)

// The codes of all errors.
const (
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeCrossOrigin          Code = "cross_origin"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeForbidden            Code = "forbidden"
	CodeDeniedByPolicy       Code = "denied_by_policy"
	CodeStepUpRequired       Code = "step_up_required"
	CodeSignInRequired       Code = "sign_in_required"
	CodeSSORequired          Code = "sso_required"
	CodeGuestsRefused        Code = "guests_refused"
	CodeSSORequiredHere      Code = "sso_required_here"
	CodeNoWayBack            Code = "no_way_back"
	CodeConnectionNeeded     Code = "connection_needed"
	CodeDomainNeeded         Code = "domain_needed"
	CodeAlreadyUndone        Code = "already_undone"
	CodeUndoOver             Code = "undo_over"
	CodeNothingToConfirm     Code = "nothing_to_confirm"
	CodeManagedByDirectory   Code = "managed_by_directory"
	CodeManagedAccount       Code = "managed_account"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeInvalidBody          Code = "invalid_body"
	CodeInvalidQuery         Code = "invalid_query"
	CodeInvalidCursor        Code = "invalid_cursor"
	CodeEventsGone           Code = "events_gone"
	CodePreconditionFailed   Code = "precondition_failed"
	CodePreconditionRequired Code = "precondition_required"

	CodeInvalidIdempotencyKey Code = "invalid_idempotency_key"
	CodeIdempotencyKeyReused  Code = "idempotency_key_reused"
	CodeIdempotencyInProgress Code = "idempotency_in_progress"

	CodeValidationFailed Code = "validation_failed"
	CodeUnavailable      Code = "unavailable"
	CodeInternal         Code = "internal_error"
	CodeMaintenance      Code = "maintenance"
	CodeTooManyAttempts  Code = "too_many_attempts"
	CodeRateLimited      Code = "rate_limited"
	CodeLogoRefused      Code = "logo_refused"

	CodeInvitationPending  Code = "invitation_pending"
	CodeAlreadyMember      Code = "already_member"
	CodeInvitationNotFound Code = "invitation_not_found"
	CodeInvitationExpired  Code = "invitation_expired"
	CodeInvitationRevoked  Code = "invitation_revoked"
	CodeInvitationUsed     Code = "invitation_used"

	CodeInvitationNotPending Code = "invitation_not_pending"
	CodeResendTooSoon        Code = "resend_too_soon"
	CodeAccountExists        Code = "account_exists"
	CodeWrongAccount         Code = "wrong_account"

	CodeMFARequired          Code = "mfa_required"
	CodeMFAEnrolmentRequired Code = "mfa_enrolment_required"
	CodeInvalidCode          Code = "invalid_code"
	CodeChallengeOver        Code = "challenge_over"
	CodeMFARequiredHere      Code = "mfa_required_here"
	CodeTooManyFactors       Code = "too_many_factors"
	CodePasskeysUnavailable  Code = "passkeys_unavailable"

	CodeSignOnRefused Code = "sign_on_refused"
	CodeSignOnState   Code = "sign_on_state"

	CodeInvalidCredentials  Code = "invalid_credentials"
	CodeMembershipSuspended Code = "membership_suspended"
	CodeLoginTooOld         Code = "login_too_old"
	CodeTenantFrozen        Code = "tenant_frozen"
	CodeTenantClosing       Code = "tenant_closing"
	CodeTenantNotClosing    Code = "tenant_not_closing"
	CodeLastOwner           Code = "last_owner"
	CodeMasterKeyMissing    Code = "master_key_missing"

	CodeUnknownAction   Code = "unknown_action"
	CodeModelInUse      Code = "model_in_use"
	CodeUnknownAudience Code = "unknown_audience"

	CodeRoleInUse    Code = "role_in_use"
	CodeTooManyRoles Code = "too_many_roles"

	CodeQuotaExceeded Code = "quota_exceeded"

	CodeTooManyKeys Code = "too_many_keys"
	CodeKeyEnded    Code = "key_ended"

	CodeTooManyWebhooks Code = "too_many_webhooks"
	CodeWebhookDisabled Code = "webhook_disabled"
	CodeNotForKeys      Code = "not_for_keys"

	CodeTooManyConnections  Code = "too_many_connections"
	CodeTooManySecrets      Code = "too_many_secrets"
	CodeConnectionNotTested Code = "connection_not_tested"
	CodeNothingPending      Code = "nothing_pending"
	CodeCertificateNeeded   Code = "certificate_needed"
	CodeTooManyDomains      Code = "too_many_domains"
	CodeDomainExists        Code = "domain_exists"
	CodeDomainInUse         Code = "domain_in_use"
	CodeDomainNotProved     Code = "domain_not_proved"
	CodeDomainTaken         Code = "domain_taken"
	CodeProviderUnavailable Code = "provider_unavailable"
	CodeSetupLinkTaken      Code = "setup_link_taken"
	CodeSetupLinkOver       Code = "setup_link_over"

	CodeTenantRequired Code = "tenant_required"

	CodeIPNotAllowed Code = "ip_not_allowed"

	CodeResetNotFound Code = "reset_not_found"
	CodeResetExpired  Code = "reset_expired"
	CodeResetUsed     Code = "reset_used"

	CodeEmailChangeNotFound Code = "email_change_not_found"
	CodeMembershipsAffected Code = "memberships_affected"
	CodeEmailChangeOver     Code = "email_change_over"
)

// Problem describes a code, for the title of its answers and for the page at its type.
type Problem struct {
	Code  Code
	Kind  Kind
	Title string // never varies
	Help  string // what it means and what to do
}

var problems = []Problem{
	{CodeNotFound, KindNotFound, "Not found", "There is nothing at this address, or the object belongs to another tenant; the answer is the same for both. Check the path and the id."},
	{CodeMethodNotAllowed, KindMethod, "Method not allowed", "The path exists, but not with this method. The Allow header lists the methods it has."},
	{CodeCrossOrigin, KindForbidden, "Refused from another origin", "A browser sent this request from a page of another origin. The answer names that origin and Doorward's own, and so does the log. Open Doorward's pages at its own origin, that of --base-url; to let pages of another origin use the API, list it in --allowed-origins. Callers that are not browsers send neither Origin nor Sec-Fetch-Site and are not affected."},
	{CodeUnauthenticated, KindUnauthenticated, "Not signed in", "The request carries no valid credential. Send a session's token as the session cookie (\"Cookie: JSESSIONID=<token>\" unless the installation names it otherwise) or as \"Authorization: Bearer <token>\", an API key, service key or operator key as \"Authorization: Bearer <key>\", and only one of them. A session ends by logout, by idling, at its absolute limit, or when someone revokes it: log in again."},
	{CodeForbidden, KindForbidden, "Not allowed", "The caller is known, but its role or kind of credential does not allow this. Someone with a higher role in the tenant can do it or change the role."},
	{CodeDeniedByPolicy, KindForbidden, "Refused by a policy", "A policy of the tenant or of the platform's model refuses this, although the role allows it. policyId names the policy, and reason is what its author says about it. Whether it refuses may depend on the time, the network, and how long ago the person signed in. An OWNER of the tenant can change its policies, the operator those of the model."},
	{CodeStepUpRequired, KindForbidden, "Recent proof required", "The role allows this, and the session is valid, but the person proved who they are too long ago, or not with a second factor that they have. acr, maxAge (in seconds) and methods say what is needed, and WWW-Authenticate says it as in RFC 9470. Prove it with POST /api/v2/auth/step-up/begin and /finish, or lead a browser to /step-up?return=, and repeat the request with the new session."},
	{CodeSignInRequired, KindForbidden, "Another sign-in required", "The session is valid, but a sign-in of its tenant's own vouches for it, which counts in that tenant alone. What belongs to the account (its address, password and second factors, other organisations) takes a session that was opened with the password or a passkey: sign in with one of them."},
	{CodeManagedAccount, KindForbidden, "Managed account", "An organisation's sign-on has made this account, and its directory decides on the address. The account becomes the person's own with its first password: ask for it with POST /api/v2/auth/forgot-password, which sends a mail to the address."},
	{CodeBodyTooLarge, KindTooLarge, "Body too large", "A request body may have 64 KiB at most; a logo 256 KiB; a model or policies 1 MiB."},
	{CodeUnsupportedMediaType, KindMediaType, "Unsupported media type", "Send the body as \"Content-Type: application/json\", in UTF-8 and without a Content-Encoding; a logo as image/png, image/jpeg or image/webp."},
	{CodeInvalidBody, KindMalformed, "Malformed body", "The body is not the JSON object that this endpoint takes: names are case-sensitive and appear once, unknown names, null and values of another type are refused. The reference at /docs/api shows the form."},
	{CodeInvalidQuery, KindMalformed, "Malformed query", "The query can't be read as parameters (a percent sign without two hexadecimal digits, or a semicolon: percent-encode the values, %25, %3B), or it has a name that this endpoint doesn't know. Names are case-sensitive. Lists, access checks and changes to people refuse unknown names, since a misspelt name would have no effect."},
	{CodeInvalidCursor, KindMalformed, "Invalid cursor", "The cursor is not from this list, was altered, or came with other filters. Start again without a cursor."},
	{CodeEventsGone, KindGone, "Events gone", "Events that follow \"after\" are no longer kept, or the database was restored from a backup since. Begin again without \"after\": the answer begins with the oldest event that is kept. What was done in between can be read from the lists, such as GET /api/v2/users."},
	{CodePreconditionFailed, KindPrecondition, "Changed since", "If-Match does not name the present version: somebody else has changed the object since you read it, or the ETag lacks its quotes. Read the object again, and repeat the change with the new ETag."},
	{CodePreconditionRequired, KindUnconditional, "If-Match required", "This replaces the whole object, so a change that somebody else has made since would be lost. Read the object, and send its ETag as If-Match."},
	{CodeInvalidIdempotencyKey, KindMalformed, "Invalid Idempotency-Key", "The header Idempotency-Key appears once and has 1 to 128 visible ASCII characters, without spaces. A random UUID is a good one."},
	{CodeIdempotencyKeyReused, KindInvalid, "Idempotency-Key used for another body", "A request to this path with this Idempotency-Key had another body in the last 24 hours. Repeat a request with the same bytes, and give each new request a new key."},
	{CodeIdempotencyInProgress, KindConflict, "Request with this Idempotency-Key in progress", "An earlier request with this Idempotency-Key has no answer yet. Repeat this one after the seconds in Retry-After: it gets that answer, or is carried out if the earlier one has failed. A request that was interrupted is over after 5 seconds."},
	{CodeValidationFailed, KindInvalid, "Invalid values", "The form is right, but one or more values are missing or can't be accepted. \"errors\" lists each with a pointer, a code and a message."},
	{CodeLogoRefused, KindInvalid, "Logo refused", "The image can't be used as a logo; \"errors\" says why: it is an SVG (svg), can't be read as the type it was sent as (invalid), has too many pixels (out_of_range), or too much detail even when scaled down (too_detailed). A PNG of at most 512 by 128 pixels with few colours is always accepted."},
	{CodeUnavailable, KindUnavailable, "Temporarily unavailable", "Doorward can't answer right now, usually because its database doesn't answer or password hashing is at its limit. The credential may still be valid. Try again after the seconds in Retry-After."},
	{CodeMaintenance, KindUnavailable, "Changes are paused", "The operator has paused changes, for the reason in \"reason\" if one was given. Signing in, access checks, and everything that ends access go on. Try again later."},
	{CodeInternal, KindInternal, "Internal error", "A defect in Doorward. Give the operator the request id; the log has the cause."},
	{CodeTooManyAttempts, KindTooMany, "Too many attempts", "There were too many attempts. Wait for the seconds in Retry-After; attempts before that are not evaluated and do not lengthen the wait. If the attempts have blocked an account, a password reset by mail unblocks it."},

	{CodeInvitationPending, KindConflict, "Invitation already pending", "This address has a pending invitation to the tenant, named in \"invitationId\". Wait for its acceptance, or revoke it and invite again."},
	{CodeAlreadyMember, KindConflict, "Already a member", "This person is a member of the tenant already, possibly a suspended one. Change the role or status of the member instead."},
	{CodeInvitationNotFound, KindNotFound, "Invitation not found", "No invitation has this token. Copy the complete code from the invitation mail, or ask for a new invitation."},
	{CodeInvitationExpired, KindGone, "Invitation expired", "The time to accept this invitation is over. Ask the administrator who sent it for a new one."},
	{CodeInvitationRevoked, KindGone, "Invitation revoked", "This invitation was withdrawn, replaced by a newer mail, or sent by someone who may no longer invite. Use the newest mail, or ask for a new invitation."},
	{CodeInvitationUsed, KindGone, "Invitation already used", "This invitation was accepted before. Log in instead; if you have forgotten the password, ask for a reset."},
	{CodeInvitationNotPending, KindConflict, "Invitation not pending", "This invitation has been accepted, was revoked, or has expired, and that is final. Invite the person again."},
	{CodeRateLimited, KindTooMany, "Rate limit of the key", "The API key has used up the requests a second that it may send. Wait for the seconds in Retry-After, or ask an administrator of the tenant for a higher limit."},
	{CodeResendTooSoon, KindTooMany, "Sent again too soon", "The last mail of this invitation was sent a moment ago, or invitations of this tenant have used up today's limit of mails to the address. Wait for the seconds in Retry-After."},
	{CodeAccountExists, KindConflict, "Account exists", "The address has an account already. For an invitation: accept it with POST /api/v2/auth/accept-invitation, signed in or with the account's current password, since an invitation never changes a password. If the password is forgotten, ask for a reset; the invitation stays valid. For a change of the address: choose another address."},
	{CodeWrongAccount, KindForbidden, "Signed in as someone else", "The invitation, or the change of an address, is of another account than that of the person who is signed in. Log out, and sign in to the right account."},

	{CodeSignOnRefused, KindForbidden, "Sign-on refused", "The sign-in at the organisation's provider was refused here. \"check\" names the check that refused it. The protocol of the connection says more to the OWNERs of the organisation: give them the request id."},
	{CodeSignOnState, KindMalformed, "Sign-in begun elsewhere", "This answer of a provider belongs to no sign-in that this browser has begun within the last 10 minutes, or it was used before. Begin the sign-in again."},
	{CodeInvalidCredentials, KindUnauthenticated, "Invalid credentials", "The address and password do not belong together, or there is no such account; the answer is the same for all causes. Check both, or reset the password."},
	{CodeMFARequired, KindForbidden, "Second factor required", "The password is right, and the account has a second factor that this login, this tenant or this invitation needs. Finish with POST /api/v2/auth/login/second, or /api/v2/auth/accept-invitation/second for an invitation: send \"challenge\" with a code (methods: totp), a passkey's answer to \"publicKey\" (passkey) or a recovery code (recovery). The challenge is good for 5 minutes and 5 tries."},
	{CodeMFAEnrolmentRequired, KindForbidden, "Second factor must be set up", "The password is right, and the tenant demands a second factor, which the account does not have yet. Set one up with POST /api/v2/auth/factors/totp or /passkey/begin and the member \"challenge\"; confirming it signs in."},
	{CodeInvalidCode, KindUnauthenticated, "Wrong code", "The code, the recovery code or the passkey's answer is not right, or was used before. A code of an authenticator app is good once, for about a minute: check the clock of the device and type the next one."},
	{CodeChallengeOver, KindGone, "Challenge over", "The challenge was used, had too many wrong answers, is older than 5 minutes, or belongs to another login or action. Begin again."},
	{CodeMFARequiredHere, KindConflict, "Second factor required here", "A tenant of the person demands a second factor, and this is the last one. Set up another one first."},
	{CodePasskeysUnavailable, KindConflict, "Passkeys unavailable", "Browsers have passkeys only at a name over HTTPS, and over HTTP at localhost. The operator sets the address with --base-url."},
	{CodeTooManyFactors, KindConflict, "Too many factors", "A person may have 20 second factors. Remove those that are no longer used."},
	{CodeMembershipSuspended, KindForbidden, "Membership suspended", "The password is right, but an administrator of the tenant, or its directory, has suspended this person there."},
	{CodeLoginTooOld, KindForbidden, "Login too old", "In the other tenant sessions end sooner than in this one, and this session is already older than that. The session stays valid here. Log in to the other tenant with the password: POST /api/v2/auth/login with its \"tenantId\"."},
	{CodeTenantFrozen, KindForbidden, "Tenant frozen", "The operator of this installation has frozen the tenant. Nobody can sign in until it is thawed."},
	{CodeTenantClosing, KindForbidden, "Tenant closing", "The tenant is closing. Only an owner may sign in, to restore it."},
	{CodeTenantNotClosing, KindConflict, "Tenant not closing", "There is nothing to restore: the tenant is not being closed, or the time in which it could be restored is over."},
	{CodeMasterKeyMissing, KindConflict, "Master key missing", "What was asked for is sealed in the database, and the server has no master key to open or seal it with. Everything else works. The operator sets the key with --master-key-file."},
	{CodeSSORequired, KindForbidden, "Sign-on required", "The organisation demands that its people sign in by its own sign-on, and a password or a passkey opens no session there. Sign in at \"startUrl\". In the console's settings of sign-on an OWNER can change that; an OWNER with a second factor, or a passkey, always gets in."},
	{CodeGuestsRefused, KindForbidden, "Guests refused", "The organisation lets in only people of its own sign-on, and this account isn't one of them. Ask one of its OWNERs to allow guests, or for an account at its provider."},
	{CodeSSORequiredHere, KindConflict, "Sign-on required here", "The tenant demands sign-on, and this would take away the connection, or the last domain, by which its people sign in. Set the mode of sign-on to optional or off first, or move the domains to another active connection."},
	{CodeManagedByDirectory, KindConflict, "Managed by a directory", "The tenant's directory has switched this person off, and it runs. Switch the person on there. An OWNER lifts it here with \"override=true\"."},
	{CodeNoWayBack, KindConflict, "No way back", "While the tenant demands sign-on, an active OWNER must be able to sign in without it: by a password and a second factor, or by a passkey. Otherwise a fault of the provider would lock everybody out. Set up a second factor or a passkey for an OWNER first; a managed account needs a password of its own before."},
	{CodeConnectionNeeded, KindConflict, "Connection needed", "Sign-on can be demanded only once a connection of the tenant is active. Test one and make it active first."},
	{CodeDomainNeeded, KindConflict, "Domain needed", "Sign-on can be demanded only once an active connection has a domain that the tenant has proved. Prove a domain and give it to the connection first."},
	{CodeAlreadyUndone, KindConflict, "Already undone", "The undo of this run was asked for before. GET the run to see how far it is, and whom it has left as they are."},
	{CodeUndoOver, KindGone, "Too late to undo", "A run can be undone within 7 days after its last change. Change the people by hand, or let the directory write them again."},
	{CodeNothingToConfirm, KindConflict, "Nothing to confirm", "No change of the demand for sign-on waits for a confirmation: it was confirmed already, or its time was over and it has returned to what was before. Read the policy again."},
	{CodeLastOwner, KindConflict, "Last owner", "The tenant would be left without an active OWNER. Make somebody else OWNER first."},

	{CodeModelInUse, KindConflict, "Model in use", "Policies of tenants name something that the new model lacks; \"errors\" lists these policies. With the new model they would refuse nothing any more. Keep in the model what they name, or apply it with force=true: then these policies are off, and all others stay in force."},
	{CodeUnknownAudience, KindForbidden, "Unknown audience", "The check names an audience that --assertion-audience doesn't have, or more than one. Without \"aud\" an assertion is for the first audience in --assertion-audience."},
	{CodeUnknownAction, KindForbidden, "Unknown action", "The check names an action that the model of the platform does not have, or more than one. Name one of its actions, or none to check the credential alone."},

	{CodeRoleInUse, KindConflict, "Role in use", "Members, pending invitations or API keys have this role: give them another one first, or name the role that takes its place with ?replaceBy=. Or the setting mfaRoles names this role alone, or a connection gives it: change that first. A role that a connection gives ranks as ADMIN at most."},
	{CodeTooManyRoles, KindConflict, "Too many roles", "A tenant may have 50 roles of its own. Delete those that nobody has."},
	{CodeQuotaExceeded, KindConflict, "Quota exceeded", "The operator limits how many people, API keys or webhooks this tenant may have, or how much may be changed in it in a day; \"quota\" names which. Remove some that are no longer needed, or ask the operator for more. Pending invitations count as people when somebody is invited. With \"eventsPerDay\" changes go on with the next day of UTC, and signing in, ending access and protecting an account are never refused."},
	{CodeTooManyKeys, KindConflict, "Too many API keys", "A tenant may have 100 API keys that have not ended, disabled ones included. Revoke those that nothing uses: the list shows when each was last used."},
	{CodeTooManyWebhooks, KindConflict, "Too many webhooks", "A tenant may have 20 webhooks, disabled ones included, and so may the installation. Delete one that nobody needs, or let one endpoint take more events."},
	{CodeWebhookDisabled, KindConflict, "Webhook disabled", "This webhook is disabled, so nothing is sent to it. Enable it first."},
	{CodeTooManyDomains, KindConflict, "Too many domains", "A tenant may have 100 domains, those that are not proved included. Delete one that nobody needs."},
	{CodeDomainExists, KindConflict, "Domain exists", "The tenant has this domain already. GET /api/v2/domains shows its record; prove it with POST /api/v2/domains/{id}/verify."},
	{CodeDomainInUse, KindConflict, "Domain in use", "People of this domain sign in by another connection of the tenant already. Take the domain away from that one first: PATCH /api/v2/domains/{id} with an empty \"connectionId\"."},
	{CodeDomainNotProved, KindConflict, "Domain not proved", "The TXT record that \"record\" of the domain describes was not found. \"seen\" has what was found in its place. Publish the record exactly as it is shown, and try again: name servers may go on answering what they had before, for as long as the record's time to live says."},
	{CodeDomainTaken, KindConflict, "Domain taken", "The record is right, and another tenant of this installation holds the domain. It becomes free when that tenant deletes it, when it has lapsed for 30 days because its record is gone, or when the operator releases it. Ask the operator if it should be yours."},
	{CodeSetupLinkTaken, KindConflict, "Link in use in another browser", "Somebody has begun by this link in another browser, and it works in that one alone. Go on there, or ask the person who sent the link for a new one."},
	{CodeSetupLinkOver, KindGone, "Link over", "This link has ended: its days are over, a newer one was made, or it was withdrawn. Ask the person who sent it for a new one."},
	{CodeProviderUnavailable, KindUnavailable, "No answer from outside", "What this depends on does not answer, or not sensibly: the name servers of a domain, or the provider of a connection. Nothing has changed. Try again later; if it goes on, ask whoever runs it."},
	{CodeKeyEnded, KindConflict, "API key ended", "This API key has expired or was revoked, and that is final. Create another one."},
	{CodeNotForKeys, KindForbidden, "Not for keys", "Only a person may do this: it is about the caller's own account, such as sessions, password, second factors and memberships, or it loosens what protects the account of somebody else. Sign in and use a session."},
	{CodeTooManyConnections, KindConflict, "Too many connections", "A tenant may have 10 connections, drafts and disabled ones included. Delete one that nobody signs in by."},
	{CodeTooManySecrets, KindConflict, "Too many secrets", "A connection has at most two client secrets, and two of its directory, so that a new one works before the old one ends. Delete the one that the provider no longer uses."},
	{CodeConnectionNotTested, KindConflict, "Connection not tested", "A connection signs people in only by what a test has passed with. What it signs in by has changed since the last test, or was never tested: run the test, then enable or switch it."},
	{CodeCertificateNeeded, KindConflict, "Certificate needed", "One certificate of the provider has to stay, or nobody could sign in. Add the next one at the provider first, or disable the connection."},
	{CodeNothingPending, KindConflict, "Nothing pending", "No change of the connection waits to be switched on: it was switched or dropped since, or there was none."},
	{CodeTenantRequired, KindMalformed, "Tenant required", "A service key acts in the tenant that the header Doorward-Tenant names by its id. The request doesn't have this header, or has it several times."},
	{CodeIPNotAllowed, KindForbidden, "Address not allowed", "The API key is bound to client addresses (allowedIps), and the request came from another one. If a proxy is in front of Doorward, the operator has to name the proxy in --trusted-proxies."},

	{CodeResetNotFound, KindNotFound, "Reset not found", "No reset of a password or of second factors has this token. Copy the complete code from the mail, or ask for a new mail."},
	{CodeResetExpired, KindGone, "Reset expired", "A password reset is valid for 30 minutes, one of second factors for 24 hours and while every tenant of the person stands by its word, and only the newest one. Ask for a new mail."},
	{CodeResetUsed, KindGone, "Reset already used", "This reset was used before. Ask for a new mail if the password is still unknown, or the second factor still lost."},
	{CodeEmailChangeNotFound, KindNotFound, "Change of address not found", "No change of an address has this code. Copy the complete code from the mail. Changes are kept for the 7 days in which they can be undone: older mails have no effect any more."},
	{CodeMembershipsAffected, KindConflict, "Memberships affected", "Tenants of the person, which \"tenants\" names, don't allow addresses of the new domain, so the change would suspend these memberships. Ask for it with \"suspend\": true to accept that, or choose another address. An administrator of such a tenant can change its settings, or resume the membership afterwards."},
	{CodeEmailChangeOver, KindGone, "Change of address over", "This change was confirmed or undone before, is too old (30 minutes to confirm it, 7 days to undo it), was replaced by a newer one, or the password was changed since. Sign in and ask for it again."},
}

var problemOf = func() map[Code]Problem {
	m := make(map[Code]Problem, len(problems))
	for _, p := range problems {
		m[p.Code] = p
	}
	return m
}()

// Problems returns the descriptions of all codes.
func Problems() []Problem { return append([]Problem(nil), problems...) }

// Problem returns the description of the code; that of internal_error for an unknown one.
func (c Code) Problem() Problem {
	if p, ok := problemOf[c]; ok {
		return p
	}
	return problemOf[CodeInternal]
}
