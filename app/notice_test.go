package app_test

import "testing"

// TestOneNotice: one browser that is not known signs in many times at once. Its
// owner hears of it once, and of each other one.
func TestOneNotice(t *testing.T) {
	onEach(t, func(w *world) {
		const callers = 16
		_, owner := w.tenant() // who has signed in once
		for _, client := range []int{1, 2} {
			before := len(w.letters(owner.Email))
			w.ends(together(callers, func(i int) error {
				_, err := w.on(i).Login.WithPassword(w.Context(), stranger(client), owner.Email, first, "")
				return err
			}), tally{"": callers})
			if got := len(w.letters(owner.Email)) - before; got != 1 {
				t.Errorf("%d mails, want one", got)
			}
		}
	})
}

// letters delivers what is queued and returns the subjects of the mails to the
// address.
func (w *world) letters(email string) (subjects []string) {
	w.Helper()
	w.ok(w.on(0).Mail.Deliver(w.Context()))
	w.mail.mu.Lock()
	defer w.mail.mu.Unlock()
	for _, message := range w.mail.mail {
		if message.To == email {
			subjects = append(subjects, message.Subject)
		}
	}
	return subjects
}
