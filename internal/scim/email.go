package scim

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// errNoEmail is the answer where a filter selects no e-mail that could be removed.
var errNoEmail = refuse(NoTarget, "Select an e-mail that the user has: none is removed.")

func (u *User) applyEmails(o *Operation) error {
	selected, err := o.path.email()
	if err != nil {
		return err
	}
	switch {
	case o.verb == remove:
		err = u.removeEmails(o, selected)
	case o.path.sub != "" || o.path.picks:
		err = u.setEmails(o, selected)
	default:
		err = u.addEmails(o)
	}
	if err == nil && len(u.Emails) > maxEmails {
		err = refuse(InvalidValue, "Send at most 100 emails.")
	}
	return err
}

// email returns the e-mail that the filter of a path describes: its type, value and so on.
func (p path) email() (wanted EmailItem, err error) {
	if !p.picks {
		return wanted, nil
	}
	comparisons, err := parseComparisons(p.filter)
	for _, c := range comparisons {
		if known, fault := wanted.set(c.path.name, c.value); fault != nil || !known || c.path != (path{name: c.path.name}) {
			err = errFilter
		}
	}
	if err != nil {
		return wanted, refuse(InvalidFilter, "Select e-mails by type, value, display or primary, with eq, joined by and.")
	}
	return wanted, nil
}

// set sets a part of an e-mail, and reports whether there is such a part. Null takes it away.
func (e *EmailItem) set(part string, value jsontext.Value) (known bool, err error) {
	switch part {
	case "value":
		e.Value, err = text("emails.value", value)
	case "display":
		e.Display, err = text("emails.display", value)
	case "type":
		e.Type, err = text("emails.type", value)
	case "primary":
		if e.Primary = nil; isNull(value) {
			return true, nil
		}
		var is bool
		if is, err = Bool(value); err == nil {
			e.Primary = &is
		}
	default:
		return false, nil
	}
	return true, err
}

// matches reports whether e has all that wanted has. Letter case doesn't count. An e-mail of which nothing
// was said isn't the primary one.
func (e *EmailItem) matches(wanted EmailItem) bool {
	has := func(want, has string) bool { return want == "" || same(want, has) }
	isPrimary := e.Primary != nil && *e.Primary
	return has(wanted.Value, e.Value) && has(wanted.Type, e.Type) && has(wanted.Display, e.Display) &&
		(wanted.Primary == nil || *wanted.Primary == isPrimary)
}

// same compares without letter case. Most texts that differ already differ in length.
func same(a, b string) bool { return len(a) == len(b) && lower(a) == lower(b) }

// removeEmails removes the e-mails that are selected, or a part of them: an e-mail without its value is none.
func (u *User) removeEmails(o *Operation, selected EmailItem) error {
	if !o.path.picks && o.path.sub == "" && !isNull(o.value) {
		return u.removeListed(o.value)
	}
	found := false
	kept := u.Emails[:0]
	for _, e := range u.Emails {
		if !e.matches(selected) {
			kept = append(kept, e)
			continue
		}
		found = true
		if o.path.sub != "" && o.path.sub != "value" {
			if _, err := e.set(o.path.sub, nil); err != nil {
				return err
			}
			kept = append(kept, e)
		}
	}
	if u.Emails = kept; !found && o.path.picks {
		return errNoEmail
	}
	return nil
}

// removeListed removes the e-mails whose values a list has.
func (u *User) removeListed(list jsontext.Value) error {
	return eachItem(list, func(item jsontext.Value) error {
		wanted, err := parseEmail(item)
		if err != nil {
			return err
		}
		before := len(u.Emails)
		u.Emails = slices.DeleteFunc(u.Emails, func(e EmailItem) bool { return e.matches(wanted) })
		if len(u.Emails) == before {
			return errNoEmail
		}
		return nil
	})
}

// setEmails sets what the path names in each e-mail that is selected. Where there is none it makes one. An
// empty value removes the e-mail.
func (u *User) setEmails(o *Operation, selected EmailItem) error {
	var probe EmailItem
	if known, err := probe.set(o.path.sub, single(o.value)); o.path.sub != "" && (err != nil || !known) {
		return err
	}
	if o.path.sub == "value" && probe.Value == "" || o.path.sub == "" && isNull(o.value) {
		u.Emails = slices.DeleteFunc(u.Emails, func(e EmailItem) bool { return e.matches(selected) })
		return nil
	}
	found := false
	for i := range u.Emails {
		if u.Emails[i].matches(selected) {
			found = true
			if err := u.setEmail(i, o); err != nil {
				return err
			}
		}
	}
	if found {
		return nil
	}
	u.Emails = append(u.Emails, selected)
	return u.setEmail(len(u.Emails)-1, o)
}

// setEmail sets what an operation names in the e-mail at i.
func (u *User) setEmail(i int, o *Operation) error {
	e := u.Emails[i]
	merge := e.merge
	if o.path.sub != "" {
		merge = func(value jsontext.Value) error {
			_, err := e.set(o.path.sub, value)
			return err
		}
	}
	if err := eachItem(o.value, merge); err != nil { // Entra ID has sent lists of one
		return err
	}
	u.Emails[i] = e
	u.keepOnePrimary(i)
	return nil
}

// keepOnePrimary makes the e-mail at i the only primary one, if it is one (RFC 7644, section 3.5.2).
func (u *User) keepOnePrimary(i int) {
	if p := u.Emails[i].Primary; p == nil || !*p {
		return
	}
	for j := range u.Emails {
		if p := u.Emails[j].Primary; j != i && p != nil && *p {
			u.Emails[j].Primary = new(bool)
		}
	}
}

// addEmails adds those of the value, or replaces all by them.
func (u *User) addEmails(o *Operation) error {
	if o.verb == replace {
		u.Emails = nil
	}
	if isNull(o.value) {
		return nil
	}
	return eachItem(o.value, func(item jsontext.Value) error {
		e, err := parseEmail(item)
		if err != nil || e == (EmailItem{}) {
			return err
		}
		at := slices.IndexFunc(u.Emails, func(has EmailItem) bool {
			return o.verb == add && same(has.Value, e.Value) && same(has.Type, e.Type)
		})
		if at < 0 {
			at = len(u.Emails)
			u.Emails = append(u.Emails, e)
		}
		if u.Emails[at] = e; o.verb == add {
			u.keepOnePrimary(at)
		}
		if len(u.Emails) > maxEmails {
			return refuse(InvalidValue, "Send at most 100 emails.")
		}
		return nil
	})
}

// parseEmail reads an e-mail: an object, or its value alone.
func parseEmail(item jsontext.Value) (e EmailItem, err error) {
	if item.Kind() == jsontext.KindString {
		e.Value, err = text("emails.value", item)
		return e, err
	}
	return e, e.merge(item)
}

// merge sets the parts that an object has.
func (e *EmailItem) merge(object jsontext.Value) error {
	return eachMember(object, "Send each e-mail as an object.", func(name string, value jsontext.Value) error {
		_, err := e.set(lower(name), value)
		return err
	})
}
