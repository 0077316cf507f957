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
// read from the file that its variable with _FILE names, or its line with -file in
// the YAML file, and is masked wherever settings are shown.
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
			demandMasked(t, name, variable(name)+"_FILE")
		})
		t.Run(name+"-file", func(t *testing.T) {
			settings := filepath.Join(t.TempDir(), "doorward.yaml")
			if err := os.WriteFile(settings, []byte(name+"-file: "+file+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("DOORWARD_CONFIG", settings)
			demandMasked(t, name, settings+" line 1: "+name+"-file")
		})
	}
}

// demandMasked wants the setting shown without its secret, and with its origin.
func demandMasked(t *testing.T, name, from string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + name + `: .*$`).FindString(printed(t))
	if !strings.Contains(line, masked) || !strings.HasSuffix(line, "# "+from) || strings.Contains(line, "SESAME") {
		t.Errorf("from %s the settings are %q", from, line)
	}
}

// TestNoSettingEndsAsItsFileDoes: "x-file" in the YAML file is the file of x.
func TestNoSettingEndsAsItsFileDoes(t *testing.T) {
	for _, name := range settingNames() {
		if strings.HasSuffix(name, "-file") {
			t.Errorf("--%s reads as the file of another setting", name)
		}
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
