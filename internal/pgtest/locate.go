package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// installFolders matches the folders, one per version, of Debian and its derivatives.
var installFolders = "/usr/lib/postgresql/*/bin"

// requirePostgres skips the test under -short and without PostgreSQL. If the environment
// requires PostgreSQL, it ignores -short and fails the test instead.
func requirePostgres(tb testing.TB) {
	tb.Helper()
	switch mode := os.Getenv("DOORWARD_TEST_POSTGRES"); {
	case mode == "require":
		if _, err := locate(); err != nil {
			tb.Fatal(err)
		}
	case mode != "":
		tb.Fatalf("pgtest: DOORWARD_TEST_POSTGRES=%q: the only valid value is require", mode)
	case testing.Short():
		tb.Skip("pgtest: no PostgreSQL under -short; make test runs everything")
	default:
		if _, err := locate(); err != nil {
			tb.Skip(err)
		}
	}
}

// locate returns the folder of the server programs: the one on PATH, else the newest
// installed.
func locate() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil && hasServer(filepath.Dir(initdb)) {
		return filepath.Dir(initdb), nil
	}
	newest, folder := 0, ""
	found, _ := filepath.Glob(installFolders)
	for _, bin := range found {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
		if err == nil && version > newest && hasServer(bin) {
			newest, folder = version, bin
		}
	}
	if folder == "" {
		return "", errors.New("pgtest: no PostgreSQL here: apt-get install postgresql, or put initdb and pg_ctl on PATH")
	}
	return folder, nil
}

// hasServer reports whether the folder has the programs that keeper.sh runs.
func hasServer(bin string) bool {
	_, initdbErr := exec.LookPath(filepath.Join(bin, "initdb"))
	_, pgctlErr := exec.LookPath(filepath.Join(bin, "pg_ctl"))
	return initdbErr == nil && pgctlErr == nil
}

// unprivileged returns the attributes of the process that runs PostgreSQL: its own
// session, and a user other than root.
func unprivileged() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() != 0 {
		return attr, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			attr.Credential, err = credential(u)
			return attr, err
		}
	}
	return nil, errors.New("pgtest: PostgreSQL refuses to run as root, and there is no user postgres or nobody")
}

func credential(u *user.User) (*syscall.Credential, error) {
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("pgtest: user %s: %w", u.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
