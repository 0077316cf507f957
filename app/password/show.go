package password

import "context"

// Show returns the address whose password the token resets, and the names that the
// new password may not contain. It changes nothing. Errors: reset_not_found,
// reset_used, reset_expired.
func (p *Passwords) Show(ctx context.Context, token string) (email string, words []string, err error) {
	_, account, err := open(ctx, p.db.Read(), token, p.db.Now())
	if err != nil {
		return "", nil, err
	}
	words, err = p.identityWords(ctx, account.ID)
	return account.Email, words, err
}
