package ui

// The states of a sign, which is drawn beside the words about an outcome, in the colour of the text around it.
const (
	SignOpen    = "open"    // it has worked, and one can go on
	SignClosed  = "closed"  // it has ended, or was refused
	SignGuarded = "guarded" // one more proof is needed, or something is being checked
)

// doneSigns are the signs of what was done, by the key of its message. What only saves a form has none.
var doneSigns = map[string]string{
	"done.registered": SignOpen, "done.joined": SignOpen, "done.entered": SignOpen, "done.reset": SignOpen, "done.proved": SignOpen,
	"done.restored": SignOpen, "done.email-changed": SignOpen,
	"done.signed-out": SignClosed, "done.erased": SignClosed, "done.left": SignClosed,
	"done.choose": SignGuarded, "done.email-undone": SignGuarded, "done.factorreset": SignGuarded, "done.email-sent": SignGuarded,
}

// signOf returns the sign of what was done, or "".
func signOf(done string) string { return doneSigns[done] }

// Nothing is what a list without rows says. Its template is "nothing".
type Nothing struct {
	Text         string
	Link, Button string // the page, and the words, of the button that fills the list or clears its filters; empty for none
	IsFiltered   bool   // there may be rows that the filters leave out
}

// Sign is that of a list that is still to be filled, or in which nothing was found.
func (n Nothing) Sign() string {
	if n.IsFiltered {
		return SignClosed
	}
	return SignOpen
}

// nothing returns a list without rows. A button is its address and its text.
func nothing(text string, button ...string) Nothing {
	n := Nothing{Text: text}
	if len(button) == 2 {
		n.Link, n.Button = button[0], button[1]
	}
	return n
}

// unmatched returns a list of which the filters leave no row.
func unmatched(text string, button ...string) Nothing {
	n := nothing(text, button...)
	n.IsFiltered = true
	return n
}
