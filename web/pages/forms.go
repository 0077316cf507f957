package pages

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/credential"
)

// mailPage is a page that a mail links to: forms, of which one shows at a
// time, and the ways they can end. The first form shows at once; mail.js moves
// on from there.
type mailPage struct {
	Steps   []step
	Endings []ending
	Again   string // the page without a token, to enter another code
}

// step is a form with its heading.
type step struct {
	ID, Title, Text string
	Untold          string // in place of Text when the link brought no token
	Form            form
}

// form is sent as one JSON object to an endpoint of the API.
type form struct {
	Action, Button string
	Done           string // the part of the page to show after a success
	Fields         []field
	outcomes       outcomes
}

// field is a member of the object that is sent.
type field struct {
	Name, Label, Hint string
	Autocomplete      string // what password managers go by
	Secret            bool
	Reveals           bool // has the button that shows the secrets of the form
	Min, Max          int  // of a new password, in code points; else 0
}

// placed is a field in a step. Names recur on a page, ids may not.
type placed struct {
	field
	ID string
}

// In returns the field as one of the step with the id.
func (f field) In(step string) placed { return placed{f, step + "-" + f.Name} }

// outcomes say what the page does about a code of the API. Codes without one
// are told in the words of their problem.
type outcomes map[doorward.Code]outcome

// outcome is either another part of the page or the fault of one field, said
// in words for the person in front of it.
type outcome struct {
	Part    string `json:"part,omitempty"`
	Pointer string `json:"pointer,omitempty"`
	Message string `json:"message,omitempty"`
}

// Outcomes is the JSON object that mail.js reads.
func (f form) Outcomes() (string, error) {
	text, err := json.Marshal(f.outcomes)
	return string(text), err
}

// and returns the outcomes with more of them.
func (o outcomes) and(more outcomes) outcomes {
	all := maps.Clone(o)
	maps.Copy(all, more)
	return all
}

// ending is a part without a form. What stands between backticks in the text
// is a member of the user that the API has answered with.
type ending struct {
	ID, Title, Text string
	Good            bool
}

// maxPassword is the longest password in code points. The page counts and
// refuses nothing: that is for the API.
const maxPassword = credential.MaxPasswordLength

var (
	mailCode = field{
		Name: "token", Label: "Code from the mail", Autocomplete: "off",
		Hint: "It stands on a line of its own. The whole link will do, too.",
	}
	samePassword    = field{Name: "confirmPassword", Label: "New password again", Autocomplete: "new-password", Secret: true}
	currentPassword = field{Name: "password", Label: "Current password", Autocomplete: "current-password", Secret: true, Reveals: true}
)

// newPassword asks for a password of at least so many code points.
func newPassword(shortest int) field {
	return field{
		Name: "password", Label: "New password", Autocomplete: "new-password",
		Secret: true, Reveals: true, Min: shortest, Max: maxPassword,
		Hint: "At least " + strconv.Itoa(shortest) + " characters. A few words in a row are easy to remember.",
	}
}

func mailView(title, description string, body mailPage) view {
	return view{File: "mail", Title: title, Description: description, Scripts: []string{"mail.js"}, Form: true, Body: body}
}

// invitationOver are the outcomes that no form can change.
var invitationOver = outcomes{
	doorward.CodeInvitationExpired:  {Part: "expired"},
	doorward.CodeInvitationRevoked:  {Part: "revoked"},
	doorward.CodeInvitationUsed:     {Part: "used"},
	doorward.CodeTenantFrozen:       {Part: "closed"},
	doorward.CodeTenantClosing:      {Part: "closed"},
	doorward.CodeInvitationNotFound: {Pointer: "/token", Message: "This code is not known. Copy it from the mail whole, or ask for a new invitation."},
}

// wrongPassword is also told to somebody who is signed in as another person:
// the password of the invited account helps there, too.
var wrongPassword = outcome{Pointer: "/password", Message: "This is not the password of the invited account."}

// acceptPage registers somebody new. That the address has an account is known
// only by trying; then the second form takes over with the same token.
func acceptPage(base string, shortest int) view {
	register := form{
		Action: base + "/api/v2/auth/complete-registration", Button: "Create account", Done: "registered",
		Fields:   []field{mailCode, newPassword(shortest), samePassword},
		outcomes: invitationOver.and(outcomes{doorward.CodeAccountExists: {Part: "join"}}),
	}
	join := form{
		Action: base + "/api/v2/auth/accept-invitation", Button: "Join", Done: "joined",
		Fields: []field{mailCode, currentPassword},
		outcomes: invitationOver.and(outcomes{
			doorward.CodeAlreadyMember:      {Part: "member"},
			doorward.CodeUnauthenticated:    {Pointer: "/password", Message: "Enter the current password of the invited account."},
			doorward.CodeInvalidCredentials: wrongPassword,
			doorward.CodeWrongAccount:       wrongPassword,
		}),
	}
	return mailView("Accept your invitation", "Accept an invitation with the link or the code of its mail.", mailPage{
		Again: base + "/accept", Steps: []step{{
			ID: "register", Title: "Accept your invitation", Form: register,
			Text:   "Choose a password to create your account.",
			Untold: "Open the link in your invitation mail, or enter the code from it here.",
		}, {
			ID: "join", Title: "You already have an account", Form: join,
			Text: "Enter its current password to join. The password stays as it is.",
		}},
		Endings: invitationEndings,
	})
}

var invitationEndings = []ending{
	{"registered", "Your account is ready", "Welcome to `tenantName`. You can sign in now as `email` with your new password.", true},
	{"joined", "You have joined `tenantName`", "You can sign in now as `email`, with the password you have always had.", true},
	{"expired", "This invitation has expired", "Ask the person who invited you to send a new one.", false},
	{"revoked", "This invitation is no longer valid", "It was withdrawn, or a newer mail has replaced it. Use the newest mail, or ask for a new invitation.", false},
	{"used", "This invitation was accepted before", "If that was you, you can sign in now. If you don’t know your password, ask for a new one where you sign in.", false},
	{"member", "You are a member already", "There is nothing left to accept. If you can’t sign in, ask one of the administrators.", false},
	{"closed", "Nobody can join at the moment", "The organisation that invited you is closed for now. Ask the person who invited you what to do.", false},
}

func resetPage(base string, shortest int) view {
	reset := form{
		Action: base + "/api/v2/auth/reset-password", Button: "Set password", Done: "changed",
		Fields: []field{mailCode, newPassword(shortest), samePassword},
		outcomes: outcomes{
			doorward.CodeResetExpired:  {Part: "expired"},
			doorward.CodeResetUsed:     {Part: "used"},
			doorward.CodeResetNotFound: {Pointer: "/token", Message: "This code is not known. Copy it from the mail whole, or ask for a new mail."},
		},
	}
	return mailView("Set a new password", "Set a new password with the link or the code of a mail.", mailPage{
		Again: base + "/reset", Steps: []step{{
			ID: "reset", Title: "Set a new password", Form: reset,
			Text:   "Setting it signs you out everywhere.",
			Untold: "Open the link in the mail, or enter the code from it here.",
		}},
		Endings: resetEndings,
	})
}

var resetEndings = []ending{
	{"changed", "Your password is changed", "You have been signed out everywhere. You can sign in now with the new password.", true},
	{"expired", "This link has expired", "A link is valid for 30 minutes, and only the newest one. Ask for a new mail where you sign in.", false},
	{"used", "This link was used before", "If that was you, sign in with the password you set. If not, ask for a new mail where you sign in.", false},
}
