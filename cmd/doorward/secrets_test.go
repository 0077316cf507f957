package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/doorward/doorward/internal/seal"
)

// TestEachSecretCanComeFromAFile: a setting whose value can hold a password can also
// be read from the file named by its variable with _FILE, or its YAML key with -file,
// and is masked wherever settings are shown.
func TestEachSecretCanComeFromAFile(t *testing.T) {
	for _, name := range settingsWithSecrets() {
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
			checkMasked(t, name, variable(name)+"_FILE")
		})
		t.Run(name+"-file", func(t *testing.T) {
			settings := filepath.Join(t.TempDir(), "doorward.yaml")
			if err := os.WriteFile(settings, []byte(name+"-file: "+file+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("DOORWARD_CONFIG", settings)
			checkMasked(t, name, settings+" line 1: "+name+"-file")
		})
	}
}

// checkMasked checks that the setting is shown with its origin, without its secret.
func checkMasked(t *testing.T, name, from string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + name + `: .*$`).FindString(printSettings(t))
	if !strings.Contains(line, masked) || !strings.HasSuffix(line, "# "+from) || strings.Contains(line, "SESAME") {
		t.Errorf("from %s the settings are %q", from, line)
	}
}

// TestNoSettingIsNamedAsAnothersFile: in the YAML file, the name of a secret with -file
// names its file, so no setting may have that name.
func TestNoSettingIsNamedAsAnothersFile(t *testing.T) {
	for _, name := range settingNames() {
		if other, found := strings.CutSuffix(name, "-file"); found && slices.Contains(settingNames(), other) {
			t.Errorf("--%s reads as the file of another setting", name)
		}
	}
}

// settingsWithSecrets returns the settings whose help shows a password, or mentions a secret,
// token, credential or header, except those that name a file or folder.
func settingsWithSecrets() (names []string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(settings).register(f)
	secret := regexp.MustCompile(`(?i):pass|secret|token|credential|header`)
	f.VisitAll(func(f *pflag.Flag) {
		if valueName, usage := pflag.UnquoteUsage(f); valueName != "file" && valueName != "folder" && secret.MatchString(usage) {
			names = append(names, f.Name)
		}
	})
	return names
}

// TestSecretsThatOthersMayRead: no command accepts a file with a secret that others may
// read, wherever the file is named, and the suggested command fixes it.
func TestSecretsThatOthersMayRead(t *testing.T) {
	values := map[string]string{"database": "sqlite:" + filepath.Join(t.TempDir(), "x.db"), "smtp": "smtp://door:SESAME@localhost:1", "trace-header": "Authorization: Bearer SESAME", "webhook-proxy": "http://door:SESAME@localhost:1"}
	inline := map[string]string{"database": "postgres://door:SESAME@localhost:1/x", "smtp": values["smtp"], "trace-header": values["trace-header"], "webhook-proxy": values["webhook-proxy"]}
	t.Setenv("DOORWARD_TRACE_OTLP", "http://localhost:1")
	for _, name := range secrets {
		t.Run(name+" in the environment", func(t *testing.T) {
			file := writeReadable(t, "secret", values[name])
			t.Setenv(variable(name)+"_FILE", file)
			checkRefusedUntilFixed(t, file, variable(name)+"_FILE: ")
		})
		t.Run(name+" in the YAML file", func(t *testing.T) {
			file := writeReadable(t, "secret", values[name])
			settings := writeReadable(t, "doorward.yaml", name+"-file: "+file) // holds no secret itself
			t.Setenv("DOORWARD_CONFIG", settings)
			checkRefusedUntilFixed(t, file, settings+" line 1: "+name+"-file: ")
		})
		t.Run(name+" inline", func(t *testing.T) {
			settings := writeReadable(t, "doorward.yaml", name+": '"+inline[name]+"'")
			t.Setenv("DOORWARD_CONFIG", settings)
			checkWarnedUntilFixed(t, settings)
		})
	}
	t.Run("tls-key", func(t *testing.T) {
		cert, key := newKeyPair(t)
		t.Setenv("DOORWARD_TLS_CERT", cert)
		t.Setenv("DOORWARD_TLS_KEY", key)
		checkRefusedUntilFixed(t, key, "DOORWARD_TLS_KEY: ")
	})
	t.Run("master-key-file", func(t *testing.T) {
		file := writeReadable(t, "master.key", strings.TrimSpace(seal.NewKey().Reveal()))
		t.Setenv("DOORWARD_MASTER_KEY_FILE", file)
		checkRefusedUntilFixed(t, file, "DOORWARD_MASTER_KEY_FILE: ")
	})
	t.Run("nothing secret", func(t *testing.T) {
		settings := writeReadable(t, "doorward.yaml", "database: postgres://door@localhost/x\nsmtp: smtp://localhost:1\nlisten: localhost:0")
		if err := runInProcess("config", "check", "--config", settings); err != nil {
			t.Error(err)
		}
	})
}

// writeReadable writes a file that everybody can read.
func writeReadable(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return file
}

// runInProcess runs the program in this process, with a time limit for a server.
func runInProcess(args ...string) error {
	cmd := command()
	cmd.SetOut(io.Discard)
	cmd.SetArgs(args)
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	return cmd.ExecuteContext(ctx)
}

// checkRefusedUntilFixed checks that serve, doctor and config check name the setting and
// the fix, and that config check accepts the file after the fix.
func checkRefusedUntilFixed(t *testing.T, file, setting string) {
	t.Helper()
	remedy := ""
	for _, args := range [][]string{{"doctor"}, {"config", "check"}, {"serve", "--listen", "localhost:0"}} {
		err := runInProcess(args...)
		if err == nil || exitCode(err) != exitConfig || !strings.HasPrefix(err.Error(), setting) || strings.Contains(err.Error(), "SESAME") {
			t.Fatalf("%s: exit code %d, %v", args[0], exitCode(err), err)
		}
		found := regexp.MustCompile(`Run: (chmod 06[04]0 \S+)`).FindStringSubmatch(err.Error())
		if found == nil || !strings.HasSuffix(found[1], file) {
			t.Fatalf("%s: no chmod of %s in %v", args[0], file, err)
		}
		remedy = found[1]
	}
	if out, err := exec.Command("sh", "-c", remedy).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", remedy, err, out)
	}
	if err := runInProcess("config", "check"); err != nil {
		t.Errorf("after %s: %v", remedy, err)
	}
}

// checkWarnedUntilFixed checks that config check warns of a YAML file with a password and
// names the fix, and doesn't warn after the fix.
func checkWarnedUntilFixed(t *testing.T, file string) {
	t.Helper()
	warnings := configWarnings(t)
	found := regexp.MustCompile(`warning: \S+ line 1: .*Run: (chmod 06[04]0 \S+),`).FindStringSubmatch(warnings)
	if found == nil || !strings.HasSuffix(found[1], file) || strings.Contains(warnings, "SESAME") {
		t.Fatalf("no warning with a chmod of %s in %q", file, warnings)
	}
	if out, err := exec.Command("sh", "-c", found[1]).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", found[1], err, out)
	}
	if warnings := configWarnings(t); strings.Contains(warnings, "chmod") {
		t.Errorf("after %s: %s", found[1], warnings)
	}
}

// configWarnings returns the warnings of config check.
func configWarnings(t *testing.T) string {
	t.Helper()
	var warnings strings.Builder
	cmd := command()
	cmd.SetOut(io.Discard)
	cmd.SetErr(&warnings)
	cmd.SetArgs([]string{"config", "check"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return warnings.String()
}

// newKeyPair writes a certificate and a key that everybody can read.
func newKeyPair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return writeReadable(t, "cert.pem", encode("CERTIFICATE", signed)), writeReadable(t, "key.pem", encode("PRIVATE KEY", secret))
}
