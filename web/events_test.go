package web_test

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/goldentest"
)

// recordedWhen says when an event is recorded. A new action needs a line.
var recordedWhen = map[doorward.Action]string{
	doorward.MFAKeep:                 "somebody refuses a reset of their second factors: the words of all tenants are void",
	doorward.MFAClone:                "a passkey was used whose signature counter has not increased, and is disabled; the use itself was refused",
	doorward.UserInvite:              "somebody is invited",
	doorward.InvitationResend:        "the mail of an invitation is sent again, with a new token",
	doorward.InvitationRevoke:        "an invitation is withdrawn",
	doorward.InvitationAccept:        "an invitation is accepted, with a new or an existing account",
	doorward.SessionOpen:             "somebody signs in, or switches to another of their tenants",
	doorward.SessionRefuse:           "refused: a password is wrong, or it is right but gives no access here, or there were too many attempts",
	doorward.SessionEnd:              "somebody ends their own sessions: by signing out, by ending other sessions, by switching tenants, or by an action in another tenant",
	doorward.RequestRefuse:           "refused: a known caller, before the action of the request is known",
	doorward.PasswordChange:          "somebody changes their own password",
	doorward.PasswordForgot:          "a reset is requested; for an address without an account the event is in the trail of the installation, one for each client network and minute",
	doorward.AccountEmail:            "somebody requests another address for their account, confirms it, or undoes the change; the last two in the trail of each of their tenants",
	doorward.AccountExport:           "somebody exports what is held about them; in the trail of each of their tenants",
	doorward.AccountErase:            "an account is erased, by the person or the operator; the event doesn't say by which. It is in every trail with events of the account, and its fields say which events may be blank",
	doorward.PasswordReset:           "a password is set with the code of a reset",
	doorward.SessionStepUp:           "somebody proves their identity again; the session gets a new token",
	doorward.MFAEnrol:                "somebody sets up a second factor, renames one, or makes new recovery codes",
	doorward.MFARemove:               "somebody removes one of their second factors",
	doorward.MFAChallenge:            "a second factor is asked for, after the password or before a switch of tenants; or somebody begins to prove their identity again",
	doorward.MFARefuse:               "refused: a second factor was wrong",
	doorward.MFARecover:              "a recovery code is used in place of the second factor; or somebody removes all factors with the code of a mail that all their tenants have asked for",
	doorward.MFAReset:                "an administrator gives the word of the tenant that the second factors of somebody may be removed, or the operator removes them",
	doorward.UserRole:                "a role is changed",
	doorward.UserSuspend:             "a membership is suspended",
	doorward.UserResume:              "a suspended membership is resumed",
	doorward.UserRename:              "an administrator changes a name",
	doorward.UserProfile:             "somebody changes their own name",
	doorward.UserSignOut:             "one session, or all sessions, of somebody in the tenant are ended",
	doorward.UserRemove:              "a membership is ended",
	doorward.UserLeave:               "somebody leaves the tenant",
	doorward.AuditRead:               "refused: the caller may not read the trail",
	doorward.UserManage:              "refused: the caller may not change this person; changes that are made are `user.role`, `user.suspend` …",
	doorward.UserImport:              "a list of people is imported: one event for each person, and one for the tenant",
	doorward.TenantCreate:            "a tenant is made",
	doorward.TenantUpdate:            "name or settings of a tenant are changed",
	doorward.TenantFreeze:            "a tenant is frozen",
	doorward.TenantThaw:              "a frozen tenant is thawed",
	doorward.TenantClose:             "a tenant is closed, by its OWNER or the operator",
	doorward.TenantOwnerless:         "a change leaves a tenant without an active OWNER: in one that is frozen or closing, or by the undo of a change of an address; the actor is who made the change",
	doorward.TenantRestore:           "a closing tenant is restored before its data is destroyed",
	doorward.TenantDestroy:           "the data of a closed tenant is destroyed at the end of its hold; refused: the caller may not close the tenant",
	doorward.TenantQuota:             "the operator changes what a tenant may have",
	doorward.TenantExport:            "a tenant, or the list of its people, is exported",
	doorward.APIKeyCreate:            "an API key is created",
	doorward.APIKeyUpdate:            "an API key is changed: name, permissions, addresses, limit, end, owner or status",
	doorward.APIKeyRotate:            "an API key gets a new secret, or its previous one is ended",
	doorward.APIKeyRevoke:            "an API key is revoked, alone or because its owner was suspended or left",
	doorward.APIKeyExpiring:          "an API key ends in 30, 7 or 1 days, and its owner was notified",
	doorward.APIKeyExpire:            "an API key has reached its end",
	doorward.APIKeyRefuse:            "a request has an API key that is not valid, or not valid from that address; the first is recorded at once, repetitions are counted by the minute",
	doorward.APIKeyLeak:              "somebody reports a key that was found, and the key ends; for an operator key the event is in the trail of the installation",
	doorward.KeyCreate:               "an operator key or a service key is created",
	doorward.KeyRevoke:               "an operator key or a service key is revoked; in a tenant's trail: invitations that the service had sent there were revoked with it",
	doorward.KeyEnable:               "a service key that a restore had disabled is enabled again",
	doorward.SigningKeyRotate:        "assertions are signed with the next key",
	doorward.MasterKeyRotate:         "sealed values are sealed with another master key",
	doorward.MasterKeyReplace:        "the operator replaces a lost master key, and what it has sealed is forgotten; in the trails of people's tenants for their authenticator apps, which can't be used any more",
	doorward.InstallationMaintenance: "the operator pauses changes, or resumes them",
	doorward.AuditLink:               "a link is made at the terminal that opens the operator's page",
	doorward.AuditOpen:               "a link to the operator's page is opened; refused: the link is not valid",
	doorward.AuditEnd:                "an operator's page is closed, or all such pages and links are ended at the terminal",
	doorward.InstallationBackup:      "a backup of the whole database was completed",
	doorward.InstallationRestore:     "the database was set back to a backup",
	doorward.QueueRetry:              "the operator has mails or deliveries tried again at once; mails: in the trail of the installation, and of the tenant if it was named; deliveries: in that of the webhook's owner",
	doorward.QueueDrop:               "the operator gives up mails or deliveries that wait; in the trails as for `queue.retry`",
	doorward.QueuePause:              "the operator pauses all mails or deliveries, or those of a tenant or webhook, or resumes them",
	doorward.AccountUnlock:           "the operator ends the delays that wrong passwords and codes have caused; in the trail of each tenant of the person",
	doorward.PasswordLink:            "the operator is shown a link that sets another password for a person; in the trail of each tenant of the person",
	doorward.IncidentSignOut:         "the operator ends all sessions of a tenant, or those opened since a time; in the trails of these tenants, and of the installation",
	doorward.IncidentForceReset:      "the operator removes the password of a person, who gets a reset by mail; in the trails of the person's tenants, and in parts of many people in that of the installation: sessions ended, passwords removed, mails queued",
	doorward.InstallationMove:        "all data was moved to another database",
	doorward.RoleCreate:              "a tenant makes a role of its own",
	doorward.RoleUpdate:              "a role that a tenant has made is changed",
	doorward.RoleDelete:              "a role that a tenant has made is deleted, and replaced by another where it was in use",
	doorward.PolicyUpdate:            "the policies of a tenant are replaced",
	doorward.PolicyConfirm:           "a version of the policies that would have ended by itself is confirmed",
	doorward.PolicyRestore:           "an earlier version of the policies is in force again",
	doorward.SSOPolicyChange:         "what a tenant demands of sign-on is changed",
	doorward.SSOConfirm:              "a demand for sign-on that would have ended by itself is confirmed",
	doorward.SSORevert:               "a demand for sign-on was not confirmed in time, and what was before holds again",
	doorward.SSORefuse:               "sign-ins by a connection were refused, once a minute and connection, with a count",
	doorward.IdentityLink:            "an account was joined to who somebody is at a tenant's provider, by the provider's word or after a proof of the account",
	doorward.UserJoin:                "a sign-in by a connection has made somebody a member",
	doorward.SSOBypass:               "an OWNER signs in with a password and a second factor, or with a passkey, to a tenant that demands its own sign-on",
	doorward.ModelApply:              "the platform's model was replaced",
	doorward.WebhookCreate:           "a webhook is created; events about webhooks of the installation are in its own trail",
	doorward.WebhookUpdate:           "a webhook is changed, disabled or enabled",
	doorward.WebhookDelete:           "a webhook is deleted",
	doorward.WebhookRotate:           "a webhook gets a new secret",
	doorward.WebhookTest:             "a test was sent to a webhook; no webhook gets this event, and the message has an id of its own",
	doorward.WebhookRetry:            "somebody has a delivery tried again",
	doorward.WebhookReplay:           "somebody has events of the past sent again",
	doorward.WebhookFailing:          "nothing could be delivered to a webhook for an hour, and for a day",
	doorward.ConnectionCreate:        "a connection to a provider of the tenant's own is made",
	doorward.ConnectionUpdate:        "a connection is changed; with `pending`, in what waits to be switched; by Doorward itself: the metadata at their address have other certificates, or the last certificate of the provider ends in 30 days, 7 days or a day",
	doorward.DirectoryAlarm:          "a directory has suspended or removed 50 people within an hour, or a fifth of the active members and at least 10; once for a run",
	doorward.DirectoryUndo:           "somebody has asked for the undo of a directory's run; what it does follows as events of the same person",
	doorward.ConnectionSwitch:        "what was pending of a connection is in force",
	doorward.ConnectionEnable:        "a connection signs people in from now on",
	doorward.ConnectionDisable:       "a connection signs nobody in any more, and its sessions have ended; by the operator: after a restore",
	doorward.ConnectionDelete:        "a connection is deleted with its identities, and its sessions have ended",
	doorward.ConnectionTry:           "somebody begins a test of a connection",
	doorward.ConnectionSecretChange:  "a client secret of a connection, or a secret of its directory, is added or deleted; by Doorward itself: it ends in 30 days, 7 days or a day, or the provider refuses it",
	doorward.SetupLinkManage:         "a link by which a customer's own IT sets a connection up is made, replaced or ended, alone or because its maker was suspended or left",
	doorward.SetupLinkBegin:          "a browser begins by such a link, and is the only one in which it works from then on",
	doorward.IdentityUnlink:          "an identity, by which a person signs in at a connection, is deleted",
	doorward.DomainCreate:            "a domain is added",
	doorward.DomainUpdate:            "a domain is given to a connection, or taken away from it",
	doorward.DomainVerify:            "the record of a domain was seen, and the tenant holds it; by Doorward itself: one that had lapsed is verified again",
	doorward.DomainLapse:             "the record of a domain has been missing for 72 hours",
	doorward.DomainRelease:           "the operator releases a domain: whoever proves it next has it",
	doorward.DomainDelete:            "a domain is deleted; by Doorward itself: another tenant has proved it after it had lapsed",
	doorward.WebhookDisable:          "Doorward disables a webhook: the endpoint answered 410, nothing could be delivered for five days, the database was restored from a backup, or its secret was lost with the master key",
}

// fieldMeanings describes the fields of events. A new field needs a line; a setting of tenants has one.
var fieldMeanings = withSettings(map[string]string{
	"about":                 "what a role or a webhook is for",
	"accent":                "the colour of the tenant",
	"entitiesChanged":       "entities of the model that are new, gone or changed, the first 50",
	"policiesChanged":       "policies of the model that are new, gone or changed, the first 50",
	"actionsAdded":          "actions that the previous model lacked, the first 50",
	"actionsChanged":        "actions that the model grants to other roles or describes in another way, the first 50",
	"actionsRemoved":        "actions that only the previous model had, the first 50",
	"apiKeys":               "how many API keys got the role that replaces the deleted one",
	"apiKeysDisabled":       "how many API keys the restore has disabled",
	"apiKeysRevoked":        "how many API keys of the person were revoked",
	"apiKeysTransferred":    "how many API keys of the person got another owner",
	"invitations":           "how many pending invitations got the role that replaces the deleted one",
	"members":               "how many people got the role that replaces the deleted one",
	"timeZone":              "the time zone in which the policies read the hour and the weekday, before and after; empty: UTC",
	"domain":                "the domain, as A-labels",
	"roleByHand":            "the role that an OWNER gave by hand, before and after; no group of a directory lowers the person's below it; empty: none",
	"connectionId":          "the connection by which the people of the domain sign in, before and after; of `identity.unlink`, that of the identity",
	"issuer":                "the issuer of the provider",
	"clientId":              "the client at the provider",
	"clientAuth":            "how Doorward proves itself to the provider",
	"clientSecret":          "the last characters of a client secret; empty before the arrow: it was added, after it: it was deleted",
	"emailFrom":             "the claim with the address",
	"jit":                   "whom the first sign-in makes a member: nobody (off), who was invited (invited), or who has an address in a proved domain (domains)",
	"jitRole":               "the role of those that no group gives one",
	"mappings":              "the roles that groups give, as in `Engineering=USER`",
	"groupsFrom":            "the claim with the groups; empty: none",
	"factorAcr":             "the values of acr that stand for a second factor",
	"outside":               "what becomes of addresses that a directory names outside of proved domains: `invite` or `refuse`",
	"emptyByRemove":         "whether a directory empties a group by removing members without naming one",
	"entityId":              "what the provider of a connection by SAML calls itself",
	"metadataUrl":           "where its metadata are read; empty: they were given as a text",
	"ssoUrl":                "where sign-ins begin at the provider",
	"certificates":          "fingerprints of the provider's certificates by which people are signed in",
	"subjectFrom":           "the attribute with the subject; empty: the NameID",
	"signRequests":          "whether requests to the provider are signed",
	"encrypt":               "whether the provider may encrypt assertions",
	"scimSecret":            "first and last characters of a secret of the connection's directory; empty before the arrow: it was made, after it: it was ended",
	"trustProviderFactor":   "whether a second factor that the provider has asked for counts",
	"ends":                  "which sessions end when the provider revokes somebody: `connection` or `tenant`",
	"endsKeys":              "whether that person's API keys end, too",
	"pending":               "`true` after the arrow: the change waits to be switched; before it: what was pending is dropped",
	"connectionsDisabled":   "how many connections the restore has disabled",
	"identitiesDeleted":     "how many identities the undo of a change of the address has deleted",
	"mode":                  "whether the policies refuse or only observe, before and after",
	"replacedBy":            "the role that takes the place of the deleted one",
	"rotateBy":              "when a key that got another owner ends unless it is rotated before",
	"serviceKeysDisabled":   "how many service keys the restore has disabled",
	"session":               "the id of the session that was ended",
	"webhooksDisabled":      "how many webhooks the restore has disabled",
	"allowedEmailDomains":   "the domains in the tenant's setting, separated by spaces",
	"allowedIps":            "the addresses from which the key may be used, separated by spaces; empty: all",
	"suspendedBy":           "why the person is suspended, before and after, where a directory has switched them off: `administrator`, and ids of connections",
	"cause":                 "of sessions: the action that has ended them, if its event is in another trail; of an API key: why it is not valid: unknown, revoked, expired, rotated, disabled, owner (no active member) or address",
	"count":                 "how many similar refusals or requests the event stands for; absent for one",
	"quota.people":          "how many people the operator allows; empty: any number",
	"quota.apiKeys":         "how many API keys the operator allows; empty: any number",
	"quota.webhooks":        "how many webhooks the operator allows; empty: any number",
	"quota.eventsPerDay":    "how many events of changes in a day the operator allows; empty: any number",
	"maintenance":           "`on` while changes are paused",
	"queue":                 "`mail`, or `webhook` for deliveries to webhooks",
	"mailKind":              "the only kind of mails that was retried or dropped; absent: any",
	"retried":               "how many mails or deliveries are tried again",
	"dropped":               "how many mails or deliveries were given up",
	"pause":                 "`on` when a queue was paused, `off` when it was resumed",
	"pauseReason":           "why the operator has paused changes",
	"database":              "the kind of the database before and after",
	"destination":           "the file that the backup is in, where it is known",
	"email":                 "the address that was invited; of an account: its address",
	"endsAt":                "when the key, the client secret or the set-up link ends",
	"run":                   "id of a run of a connection's directory",
	"suspended":             "people whom the run has suspended, so far",
	"removed":               "people whom the run has removed, so far",
	"setupLink":             "the link's id: of a new one, and of one that has ended",
	"expiresAt":             "when the invitation or the key ends",
	"factor":                "the kind of the second factor that was set up, removed or disabled: totp or passkey",
	"factorRenamed":         "the kind of the second factor that was renamed; the names are not recorded",
	"recoveryCodes":         "how many recovery codes can be used, before and after",
	"mfaRoles":              "the roles in the tenant's setting, separated by spaces; empty: all",
	"hint":                  "first and last characters of the secret of a key, before and after",
	"invitationsRevoked":    "how many invitations the action has ended",
	"invitedBy":             "the new inviter, if the earlier inviter may no longer invite",
	"linksEnded":            "how many links in mails the action has ended",
	"blankedInvitation":     "an invitation to the person, whose events in this trail may be blank; its address is blank, too",
	"webhookLost":           "a webhook whose secret was lost with the master key, so that it is disabled",
	"connectionLost":        "a connection whose client secret, or a key of type saml, was lost with the master key",
	"webhookLeft":           "a webhook that the person has made, and that goes on",
	"apiKeyLeft":            "an API key of somebody else that goes on, and whose secret the person was shown",
	"personRaised":          "a member whose present role the person has given",
	"personInvited":         "a member who came by an invitation of the person",
	"blankedEvent":          "the event of the creation of the tenant; it named the person and may be blank",
	"may":                   "what a service key may do: permissions, separated by spaces",
	"tenants":               "the tenants that a service key is limited to, separated by spaces; absent: all",
	"masterKey":             "the ids of the master keys",
	"logo":                  "the hash of the tenant's logo before and after",
	"name":                  "the name of the target",
	"ownerEmail":            "the address of the first OWNER",
	"ownerId":               "the owner of the key",
	"passwordHashes":        "`exported` if the export has password hashes",
	"mailsQueued":           "how many people were mailed that their password was removed",
	"people":                "how many people the import, or the removal of passwords, has changed",
	"openedSince":           "only sessions opened then or later were ended; absent: all",
	"perSecond":             "how many requests a second a key may send; empty: no limit",
	"permissions":           "what the key or the role may do: permissions, separated by spaces",
	"previousEndsAt":        "when the secret that a rotation has replaced ends",
	"confirmBy":             "when the demand for sign-on returns to what it was unless it is confirmed",
	"ssoMode":               "the mode of sign-on: off, optional or required",
	"ssoGuests":             "whether a tenant that demands sign-on lets in others: allowed or refused",
	"reason":                "why it was refused: a problem's code, see [errors.md](errors.md); why a webhook was disabled: gone, failing, restored or key_lost; of `connection.secret`: client, the provider refuses it, or key_lost, it was lost with the master key",
	"confirmUntil":          "when the version of the policies ends unless it is confirmed",
	"policy":                "the id of the policy that refused",
	"restored":              "the version of the policies whose text is in force again",
	"rememberedBrowsers":    "the number of browsers in which the person isn't asked for the second factor, before and after",
	"requestedEmail":        "the address that the account gets when the change is confirmed",
	"role":                  "the role; in a refusal, the one that was requested",
	"sessionsEnded":         "how many sessions in this tenant the action has ended; of `installation.restore`: in all tenants",
	"signingKey":            "the id of the key that signs",
	"status":                "the state of the target; of `webhook.test`, the status of the answer",
	"policiesOff":           "how many policies of tenants are off, because they name something that the new model lacks",
	"deliveryId":            "the delivery that is tried again",
	"enabled":               "whether the webhook gets events",
	"events":                "the patterns of the events that a webhook gets, separated by spaces",
	"failingSince":          "the first failure since the last success",
	"include":               "what the messages of a webhook contain in addition, separated by spaces",
	"queued":                "how many events are sent again",
	"url":                   "where a webhook goes, without the query",
	"systemUser":            "of every event that a command has written: who ran it, the user of the system (with sudo, the one who called it) and the host, as in `root@db1`; of events of the operator's page: who has made its link",
	"operatorReason":        "of every event that a command has written: the text of `--reason`; absent without it; of events of the operator's page: that of its link",
	"acts":                  "what the operator's page may do to tenants: freeze, thaw, close; absent if it only shows",
	"userAgent":             "the browser, if the mail about the action names it",
	"version":               "the number of the model, or of the policies, before and after",
	"factorsDisabled":       "how many second factors the undo of a change of the address has disabled",
	"connection":            "the connection by which an account was joined to who somebody is at a provider",
	"identity":              "that identity, by its id",
	"managed":               "whether a tenant's sign-on manages the account; its first password ends that, and removes its second factors",
	"recoveryCodesDisabled": "how many recovery codes it has ended",
})

// withSettings adds the settings of tenants that have no meaning of their own.
func withSettings(meanings map[string]string) map[string]string {
	for _, s := range doorward.Settings(doorward.SessionLimits{}, 0) {
		meanings[s.Event] = cmp.Or(meanings[s.Event], "a setting of the tenant")
	}
	return meanings
}

// recordedWith returns an event of a success with changes of the fields.
func recordedWith(action doorward.Action, target string, fields ...string) doorward.Event {
	e := doorward.Event{Action: action, Outcome: doorward.Done, Target: doorward.Object{Type: target}}
	for _, name := range fields {
		e.Changes = append(e.Changes, doorward.Change{Field: name})
	}
	return e
}

// recordedElsewhere are the events, and fields of events, that no step here records. The scripts
// in cmd/doorward/testdata test those about a database, the packages of the features the others.
var recordedElsewhere = []doorward.Event{
	recordedWith(doorward.MasterKeyRotate, "installation", "masterKey"),
	recordedWith(doorward.MasterKeyReplace, "installation", "masterKey", "people", "webhooksDisabled", "signingKey"),
	recordedWith(doorward.MasterKeyReplace, "user", "factorsDisabled"),
	recordedWith(doorward.MasterKeyReplace, "tenant", "masterKey", "webhookLost", "connectionLost"),
	recordedWith(doorward.SigningKeyRotate, "installation", "signingKey"),
	recordedWith(doorward.InstallationBackup, "installation", "destination"),
	recordedWith(doorward.InstallationRestore, "installation", "sessionsEnded", "linksEnded", "apiKeysDisabled", "serviceKeysDisabled", "webhooksDisabled", "connectionsDisabled"),
	recordedWith(doorward.InstallationMove, "installation", "database"),
	recordedWith(doorward.AccountUnlock, "user"),
	recordedWith(doorward.PasswordLink, "user"),
	recordedWith(doorward.IncidentSignOut, "installation", "sessionsEnded", "openedSince"),
	recordedWith(doorward.IncidentSignOut, "tenant", "sessionsEnded", "openedSince"),
	recordedWith(doorward.IncidentForceReset, "installation", "people", "sessionsEnded", "mailsQueued"),
	recordedWith(doorward.IncidentForceReset, "tenant", "people", "sessionsEnded"),
	recordedWith(doorward.IncidentForceReset, "user", "people", "sessionsEnded"),
	recordedWith(doorward.QueueRetry, "installation", "queue", "mailKind", "retried"),
	recordedWith(doorward.QueueRetry, "tenant", "queue", "mailKind", "retried"),
	recordedWith(doorward.QueueRetry, "webhook", "queue", "retried"),
	recordedWith(doorward.QueueDrop, "installation", "queue", "mailKind", "dropped"),
	recordedWith(doorward.QueueDrop, "tenant", "queue", "mailKind", "dropped"),
	recordedWith(doorward.QueueDrop, "webhook", "queue", "dropped"),
	recordedWith(doorward.QueuePause, "installation", "queue", "pause"),
	recordedWith(doorward.QueuePause, "tenant", "queue", "pause"),
	recordedWith(doorward.QueuePause, "webhook", "queue", "pause"),
	recordedWith(doorward.AccountErase, "user", doorward.FieldBlankedEvent, doorward.FieldWebhookLeft, doorward.FieldAPIKeyLeft, doorward.FieldPersonRaised, doorward.FieldPersonInvited),
	recordedWith(doorward.SessionOpen, "session", doorward.FieldConnection),
	recordedWith(doorward.PasswordReset, "user", "managed"),
	recordedWith(doorward.AccountEmail, "user", "factorsDisabled", "recoveryCodesDisabled", "identitiesDeleted"),
	recordedWith(doorward.ModelApply, "model", "policiesOff"),
	recordedWith(doorward.WebhookUpdate, "webhook", "about", "enabled", "url"),
	recordedWith(doorward.APIKeyUpdate, "key", "expiresAt", "ownerId", "permissions", "rotateBy"),
	recordedWith(doorward.UserSuspend, "user", "apiKeysRevoked", "apiKeysTransferred", "cause", doorward.FieldSuspendedBy),
	recordedWith(doorward.UserResume, "user", doorward.FieldSuspendedBy),
	recordedWith(doorward.UserRole, "user", doorward.FieldRoleByHand),
	recordedWith(doorward.UserRemove, "user", "apiKeysRevoked", "apiKeysTransferred"),
	recordedWith(doorward.UserLeave, "user", "apiKeysRevoked"),
	recordedWith(doorward.UserSignOut, "user", "session"),
	recordedWith(doorward.RoleCreate, "role", "about"),
	recordedWith(doorward.RoleUpdate, "role", "mfaRoles", "name"),
	recordedWith(doorward.RoleDelete, "role", "apiKeys", "invitations", "members", "mfaRoles", "replacedBy"),
	recordedWith(doorward.PolicyUpdate, "policy", "mode", "timeZone"),
	recordedWith(doorward.PolicyRestore, "policy", "mode", "timeZone"),
	recordedWith(doorward.SSOPolicyChange, "tenant", doorward.FieldSSOMode, doorward.FieldSSOGuests, doorward.FieldConfirmBy, "sessionsEnded"),
	recordedWith(doorward.SSOConfirm, "tenant", doorward.FieldSSOMode, doorward.FieldSSOGuests, "sessionsEnded"),
	recordedWith(doorward.SSORevert, "tenant", doorward.FieldSSOMode, doorward.FieldSSOGuests, "sessionsEnded"),
	recordedWith(doorward.SSORefuse, "connection", doorward.FieldReason, doorward.FieldCount),
	recordedWith(doorward.IdentityLink, "user", "connection", "identity"),
	recordedWith(doorward.UserJoin, "user", doorward.FieldEmail, doorward.FieldRole),
	recordedWith(doorward.SSOBypass, "user", doorward.FieldUserAgent),
	recordedWith(doorward.WebhookFailing, "webhook", "url", "failingSince"),
	recordedWith(doorward.WebhookDisable, "webhook", "url", "reason"),
	recordedWith(doorward.ConnectionUpdate, "connection", "issuer", "clientId", "clientAuth", "jit", "jitRole", "mappings", "groupsFrom", "factorAcr", "trustProviderFactor", "ends", "endsKeys", "pending", "outside", "emptyByRemove", "endsAt",
		"entityId", "metadataUrl", "ssoUrl", "certificates", "subjectFrom", "signRequests", "encrypt"),
	recordedWith(doorward.DirectoryAlarm, "connection", "run", "suspended", "removed"),
	recordedWith(doorward.DirectoryUndo, "connection", "run", "suspended", "removed"),
	recordedWith(doorward.ConnectionSwitch, "connection", "issuer", "clientId", "clientAuth", "emailFrom", "entityId", "metadataUrl", "ssoUrl", "certificates", "subjectFrom"),
	recordedWith(doorward.ConnectionDisable, "connection", "sessionsEnded"),
	recordedWith(doorward.ConnectionDelete, "connection", "sessionsEnded"),
	recordedWith(doorward.ConnectionSecretChange, "connection", "endsAt", "reason", doorward.FieldSCIMSecret),
	recordedWith(doorward.APIKeyLeak, "connection", doorward.FieldSCIMSecret),
	recordedWith(doorward.UserRename, "user", doorward.FieldEmail),
	recordedWith(doorward.ConnectionTry, "connection"),
	recordedWith(doorward.SetupLinkBegin, "connection", doorward.FieldUserAgent),
	recordedWith(doorward.IdentityUnlink, "user", "connectionId", "sessionsEnded"),
	recordedWith(doorward.DomainUpdate, "domain", "domain", "connectionId"),
	recordedWith(doorward.DomainLapse, "domain", "domain", "status"),
	recordedWith(doorward.DomainDelete, "domain", "connectionId"),
}

// TestGoldenEvents: docs/events.md has a row for each event and each of its fields,
// as recorded by the steps of trail_test.go. To rewrite it: go test -run Golden ./web
// -update.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	d := start(t, masterKey(t), withPasskeys())
	r := newRecorder(t, d)
	for _, s := range slices.Concat(r.operatorSteps(), r.invitationSteps(), r.keySteps(), r.webhookSteps(), r.connectionSteps(), r.domainSteps(), r.acceptanceSteps(), r.sessionSteps(), r.factorSteps(),
		r.passwordSteps(), r.memberSteps(), r.erasureSteps(), r.ownerSteps(), r.tenantSteps(), r.keyExpirySteps()) {
		s.do()
	}
	r.recordOtherFields()
	r.newEvents() // appends the last ones to r.events
	seen := map[doorward.Action][]doorward.Event{}
	for _, e := range append(r.events, recordedElsewhere...) {
		seen[e.Action] = append(seen[e.Action], e)
	}
	checkReasons(t, r.events)
	goldentest.Section(t, "../docs/events.md", "events", eventTable(t, seen))
	goldentest.Section(t, "../docs/events.md", "fields", fieldTable(t, seen))
}

// recordOtherFields records events with fields that those of the steps lack: about people with
// several sessions and invitations.
func (r *recorder) recordOtherFields() {
	r.t.Helper()
	more := r.Tenant("More")
	owner := as(more.Owner.Token())
	pending := "" // the last invitation
	// joinAndInvite returns the id of the person who has joined.
	joinAndInvite := func(email string) string {
		p := more.Join(email, "ADMIN")
		pending = r.ask("POST /api/v2/auth/invite", m{"email": "by-" + email, "role": "USER"}, as(p.Login())).ok(http.StatusCreated).text("id")
		return p.ID
	}
	r.ask("PATCH /api/v2/users/"+joinAndInvite("suspended@more.example"), m{"status": "suspended"}, owner).ok(http.StatusOK)
	r.ask("DELETE /api/v2/users/"+joinAndInvite("removed@more.example"), nil, owner).ok(http.StatusOK)
	joinAndInvite("leaving@more.example")
	r.ask("DELETE /api/v2/auth/memberships/"+more.ID, nil, as(r.server.token(r.t, "leaving@more.example"))).ok(http.StatusNoContent)
	r.ask("PATCH /api/v2/users/"+joinAndInvite("demoted@more.example"), m{"role": "VIEWER"}, owner).ok(http.StatusOK)
	r.Advance(2 * time.Minute) // past the minimum interval for resending
	owner = as(more.Owner.Login())
	r.ask("POST /api/v2/invitations/"+pending+"/resend", nil, owner).ok(http.StatusOK)
	r.ask("PATCH /api/v2/tenant", m{"settings": m{
		"sessionIdleMinutes": 5, "sessionAbsoluteMinutes": 60, "allowedEmailDomains": []string{"more.example"},
		"mfa": "required", "mfaRoles": []string{"VIEWER"}, "mfaGraceDays": 1, "mfaRememberDays": 1, "stepUpMinutes": 5, "keepEventsDays": 365,
	}}, owner).ok(http.StatusOK)
	if err := r.Node.App.Tenants.Export(r.t.Context(), doorward.OperatorAtTerminal(), more.ID, true, io.Discard); err != nil {
		r.t.Fatal(err)
	}
	for range 11 { // one more than the sessions a person may have
		r.server.token(r.t, "demoted@more.example", with("User-Agent", "another browser"))
	}
	viewer := as(r.server.token(r.t, "demoted@more.example"))
	for range 5 { // one event counts several refusals
		r.ask("GET /api/v2/audit-events", nil, viewer).fails(http.StatusForbidden, "forbidden")
	}
	r.ask(changePath, m{"currentPassword": password, "password": canary("another"), "confirmPassword": canary("another")}, as(r.server.token(r.t, "demoted@more.example"))).ok(http.StatusNoContent)
	r.closeTenant(r.t, more.Owner, more.ID, "More")
	r.newEvents() // appends to r.events before the trail is deleted with the tenant
	r.Advance(15 * 24 * time.Hour)
	if err := r.Node.App.Sweep(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// checkReasons requires that each reason is last_owner, or a code of the kinds that web/console
// has messages for.
func checkReasons(t *testing.T, events []doorward.Event) {
	t.Helper()
	seen := 0
	for _, e := range events {
		for _, c := range e.Changes {
			if c.Field != "reason" {
				continue
			}
			seen++
			kind := doorward.Code(c.To).Problem().Kind
			if !slices.Contains([]doorward.Kind{doorward.KindForbidden, doorward.KindUnauthenticated, doorward.KindTooMany}, kind) && c.To != string(doorward.CodeLastOwner) {
				t.Errorf("%s was refused for the reason %q: add codes of this kind to canBeReason in web/console/words_test.go", e.Action, c.To)
			}
		}
	}
	if seen == 0 {
		t.Error("nothing was refused")
	}
}

func eventTable(t *testing.T, seen map[doorward.Action][]doorward.Event) string {
	t.Helper()
	text := "| Event | Recorded when | Target | Fields |\n|---|---|---|---|\n"
	for _, verb := range doorward.Verbs() {
		events := seen[verb.Action]
		if len(events) == 0 {
			continue
		}
		if recordedWhen[verb.Action] == "" {
			t.Errorf("%s: describe in recordedWhen in events_test.go when it is recorded", verb.Action)
		}
		if done := slices.DeleteFunc(slices.Clone(events), func(e doorward.Event) bool { return e.Outcome != doorward.Done }); len(done) > 0 {
			events = done // the page describes the fields of refusals next to the table
		}
		targets, fields := map[string]bool{}, map[string]bool{}
		for _, e := range events {
			targets[e.Target.Type] = true
			for _, c := range e.Changes {
				fields["`"+c.Field+"`"] = true
			}
		}
		text += fmt.Sprintf("| `%s` | %s | %s | %s |\n", verb.Action, recordedWhen[verb.Action], sortedList(targets), sortedList(fields))
	}
	for action := range recordedWhen {
		if len(seen[action]) == 0 {
			t.Errorf("no event is a %s: remove it from recordedWhen in events_test.go, or add a step that records it", action)
		}
	}
	return text
}

func sortedList(words map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(words)), ", ")
}

func fieldTable(t *testing.T, seen map[doorward.Action][]doorward.Event) string {
	t.Helper()
	named := map[string]bool{doorward.FieldSystemUser: true, doorward.FieldOperatorReason: true} // of every command
	for _, events := range seen {
		for _, e := range events {
			for _, c := range e.Changes {
				named[c.Field] = true
			}
		}
	}
	text := "| Field | What it is |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if fieldMeanings[name] == "" {
			t.Errorf("%s: describe it in fieldMeanings in events_test.go", name)
		}
		text += fmt.Sprintf("| `%s` | %s |\n", name, fieldMeanings[name])
	}
	for name := range fieldMeanings {
		if !named[name] {
			t.Errorf("no event has the field %s: remove it from fieldMeanings in events_test.go, or add a step that records it", name)
		}
	}
	return text
}

// TestEachFieldIsDescribed: docs/events.md describes each field whose name the features have as
// a literal.
func TestEachFieldIsDescribed(t *testing.T) {
	literal := regexp.MustCompile(`(?:Changed\(|Change\{Field: |Change\{\{Field: )"([A-Za-z]+)"`)
	found := 0
	err := filepath.WalkDir("../app", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range literal.FindAllSubmatch(text, -1) {
			found++
			if fieldMeanings[string(name[1])] == "" {
				t.Errorf("%s records %s: describe it in fieldMeanings in events_test.go", path, name[1])
			}
		}
		return err
	})
	if err != nil || found < 30 {
		t.Fatalf("%d fields: %v", found, err)
	}
}
