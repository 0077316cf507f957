package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestEverySecretComesFromAFileToo: a setting whose value can hold a password is
// read from the file that its variable with _FILE names, and is masked wherever
// settings are shown.
func TestEverySecretComesFromAFileToo(t *testing.T) {
	for _, name := range holdSecrets() {
		if !slices.Contains(secrets, name) {
			t.Errorf("--%s can hold a secret and is not in secrets", name)
		}
	}
	for _, name := range secrets {
		file := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(file, []byte("SESAME\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Setenv(variable(name)+"_FILE", file)
			line := regexp.MustCompile(`(?m)^` + name + `: .*$`).FindString(printed(t))
			if !strings.Contains(line, masked) || !strings.HasSuffix(line, variable(name)+"_FILE") || strings.Contains(line, "SESAME") {
				t.Errorf("with %s_FILE the settings are %q", variable(name), line)
			}
		})
	}
}

// holdSecrets are the settings whose help shows a password, or speaks of a
// secret that is no file or number.
func holdSecrets() (names []string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(settings).register(f)
	secret := regexp.MustCompile(`(?i):pass|secret|token|credential|header`)
	f.VisitAll(func(f *pflag.Flag) {
		if what, usage := pflag.UnquoteUsage(f); what != "file" && what != "folder" && secret.MatchString(usage) {
			names = append(names, f.Name)
		}
	})
	return names
}
