package scim

import "strings"

// schemaOf says of which schema an attribute is.
type schemaOf int

const (
	core       schemaOf = iota // of users or groups, or without a URN
	enterprise                 // of the enterprise extension
	foreign                    // of a schema that isn't known
)

// known are the schemas by the URNs that may stand before a name, in lower case.
var known = []struct {
	urn    string
	schema schemaOf
	only   Resource // the URN belongs to these; zero: to any
}{
	{lower(UserSchema), core, Users},
	{lower(GroupSchema), core, Groups},
	{lower(EnterpriseSchema), enterprise, Users},
}

// path is the target of an operation, or the left side of a comparison (RFC 7644, figures 1 and 7).
type path struct {
	schema schemaOf
	only   Resource // whose URN stood before it; zero: there was none
	name   string   // of the attribute, in lower case; empty: the schema itself
	filter string   // what stood between brackets
	picks  bool     // there were brackets
	sub    string   // the name behind the point, in lower case
}

// isSchema reports whether the path is the URN of a known schema and nothing else.
func (p path) isSchema() bool { return p.name == "" && p.schema != foreign }

// coreNames are the attributes of users and groups that are kept, in lower case.
var coreNames = map[string]bool{
	"username": true, "externalid": true, "displayname": true, "active": true, "name": true, "emails": true,
	"members": true,
}

// spellings are the names of attributes and of their parts as RFC 7643 spells them.
var spellings = []string{
	"userName", "externalId", "displayName", "givenName", "familyName", "middleName", "honorificPrefix", "honorificSuffix", "employeeNumber", "costCenter",
}

// spelled returns a name in lower case as RFC 7643 spells it.
func spelled(name string) string {
	for _, s := range spellings {
		if lower(s) == name {
			return s
		}
	}
	return name
}

// String returns the attribute as messages name it: as RFC 7643 spells it, however it was sent.
func (p path) String() string {
	if p.sub == "" {
		return spelled(p.name)
	}
	return spelled(p.name) + "." + spelled(p.sub)
}

// isKept reports whether a path leads to an attribute that is kept, or to all of the enterprise extension.
func (p path) isKept() bool {
	return p.schema == core && coreNames[p.name] || p.schema == enterprise && (p.name == "" || enterpriseNames[p.name])
}

// parsePath reads a path. An attribute of an unknown schema is accepted whatever follows the URN.
func parsePath(text string) (path, error) {
	p, rest, ok := scanPath(text)
	if !ok || rest != "" {
		return path{}, refuse(InvalidPath, "Correct the path: it has the form name, name.part, name[filter] or name[filter].part, perhaps behind the URN of a schema and a colon.")
	}
	return p, nil
}

// scanPath reads the path at the beginning of text, and returns what follows. It reports whether there is one.
func scanPath(text string) (p path, rest string, ok bool) {
	if strings.HasPrefix(lower(text[:min(4, len(text))]), "urn:") {
		if p, text = splitURN(text); p.schema == foreign || text == "" {
			return p, "", true
		}
	}
	end := nameEnd(text)
	p.name, rest = lower(text[:end]), text[end:]
	if p.schema == core && p.only == 0 && enterpriseNames[p.name] {
		p.schema = enterprise // Entra ID once sent "manager" without the URN
	}
	ok = p.name != "" && p.takeFilter(&rest) && p.takeSub(&rest)
	return p, rest, ok
}

// splitURN cuts the URN of a known schema off. What follows an unknown one is cut off with it.
func splitURN(text string) (path, string) {
	for _, k := range known {
		if len(text) < len(k.urn) || lower(text[:len(k.urn)]) != k.urn {
			continue
		}
		p := path{schema: k.schema, only: k.only}
		rest := text[len(k.urn):]
		if rest == "" {
			return p, ""
		}
		if name, found := strings.CutPrefix(rest, ":"); found && name != "" {
			return p, name
		}
	}
	return path{schema: foreign}, ""
}

// nameEnd is the length of the name at the beginning of text.
func nameEnd(text string) int {
	for i := range len(text) {
		c := text[i]
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '$' && i == 0
		if !isLetter && (i == 0 || !('0' <= c && c <= '9' || c == '-' || c == '_')) {
			return i
		}
	}
	return len(text)
}

// takeFilter takes [filter], in which brackets within quotes don't count. It reports whether it is closed.
func (p *path) takeFilter(rest *string) bool {
	if !strings.HasPrefix(*rest, "[") {
		return true
	}
	quoted := false
	for i := 1; i < len(*rest); i++ {
		switch c := (*rest)[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			p.filter, p.picks = strings.TrimSpace((*rest)[1:i]), true
			*rest = (*rest)[i+1:]
			return p.filter != ""
		}
	}
	return false
}

// takeSub takes .name, where a point follows. It reports whether a name follows the point.
func (p *path) takeSub(rest *string) bool {
	after, found := strings.CutPrefix(*rest, ".")
	if !found {
		return true
	}
	end := nameEnd(after)
	p.sub, *rest = lower(after[:end]), after[end:]
	return p.sub != ""
}
