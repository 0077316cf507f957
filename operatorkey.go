package doorward

// IsLimited reports whether the principal is an operator key, or an operator's page, that may do only what Limits
// lists.
func (p *Principal) IsLimited() bool { return p.IsPage || len(p.Limits) > 0 }
