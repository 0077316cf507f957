package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPurge: purging the Debian package deletes the data, and the master key unless there are backups,
// which nobody could read without it. dpkg sets DPKG_ROOT where it works on another root.
func TestPurge(t *testing.T) {
	const state, backups = "var/lib/doorward", "var/backups/doorward"
	for _, test := range []struct{ name, command, backup, want string }{
		{"purge with backups", "purge", "/20261129.db", "var/lib/doorward/doorward.db.key"},
		{"purge without backups", "purge", "", ""},
		{"remove", "remove", "", "var/lib/doorward/acme/account.key var/lib/doorward/doorward.db var/lib/doorward/doorward.db.key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for _, name := range []string{state + "/doorward.db", state + "/doorward.db.key", state + "/acme/account.key", backups + test.backup} {
				writeEmpty(t, filepath.Join(root, name), name == backups)
			}
			cmd := exec.Command("sh", "../../deploy/deb/postrm", test.command)
			cmd.Env = append(os.Environ(), "DPKG_ROOT="+root)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("postrm: %v\n%s", err, out)
			}
			if left := filesIn(t, root, state); left != test.want {
				t.Errorf("%q is left of the state, want %q", left, test.want)
			}
			if left := filesIn(t, root, backups); test.backup != "" && left != backups+test.backup {
				t.Errorf("%q is left of the backups", left)
			}
		})
	}
}

// writeEmpty makes an empty file or folder.
func writeEmpty(t *testing.T, name string, isFolder bool) {
	t.Helper()
	folder := filepath.Dir(name)
	if isFolder {
		folder = name
	}
	err := os.MkdirAll(folder, 0o700)
	if err == nil && !isFolder {
		err = os.WriteFile(name, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// filesIn returns the files below a folder of root, sorted.
func filesIn(t *testing.T, root, folder string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(root, name)
			names = append(names, relative)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}
