package main

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/app/user"
)

// Long lists are cut short, because nobody reads them to the end.
func TestListsAreCutShort(t *testing.T) {
	var out, errs strings.Builder
	const dryRun = false
	printImported(&out, "p.csv", user.Imported{PasswordKept: make([]roster.Person, maxNotes+7)}, dryRun)
	if n := strings.Count(out.String(), "\n"); n != maxNotes+2 || !strings.Contains(out.String(), "\np.csv: and 7 more who already have an account\n") {
		t.Errorf("%d lines, the last ones %q", n, out.String()[out.Len()-150:])
	}
	var faults roster.Faults
	for line := range roster.MaxFaults + 7 {
		faults.Add(line, "email", "invalid", "No.")
	}
	err := printListFaults(&errs, "p.csv", faults.Err())
	if n := strings.Count(errs.String(), "\n"); n != roster.MaxFaults+1 || !strings.HasSuffix(errs.String(), "\np.csv: and 7 more\n") {
		t.Errorf("%d lines, the last ones %q", n, errs.String()[errs.Len()-150:])
	}
	if err == nil || err.Error() != "nobody was imported: the list of people has 107 faults" {
		t.Errorf("the error is %v", err)
	}
}
