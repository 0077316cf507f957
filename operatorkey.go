package doorward

// IsLimited reports whether the principal is an operator key that may do only what Limits
// lists.
func (p *Principal) IsLimited() bool { return len(p.Limits) > 0 }
