// Package secretfile reads files that hold a secret, and refuses those that
// others can read or write.
//
//	text, err := secretfile.Read("/run/secrets/database")
//
// The rule is the one that libpq has for private keys. Only the owner may have
// access; if root owns the file, the group may read it, as with packages
// (root:doorward, 0640), systemd's credentials and Kubernetes Secrets with an
// fsGroup.
//
// It checks the mode of the opened file, after symbolic links, and not those of
// the folders above, which a container can't see. Of an access control list
// (ACL) it sees what the group bits of the mode show.
package secretfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ExposedError says that others may read or write the file. Its text ends with Remedy.
type ExposedError struct {
	Path string
	Mode fs.FileMode // permissions only
	// Remedy is the shell command that fixes the permissions.
	Remedy string
}

// Error returns the file, its mode, and the command to run.
func (e *ExposedError) Error() string {
	return fmt.Sprintf("the file %s holds a secret that others can read or change (mode %04o). Run: %s", e.Path, e.Mode, e.Remedy)
}

// Read returns the content of the file, without the byte order mark that Windows editors put in front.
// Errors: *ExposedError, ErrEncoding, and those of reading.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkPermissions(f, path); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, ErrEncoding
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), err
}

// ErrEncoding says that the file isn't in UTF-8.
var ErrEncoding = errors.New("it is in UTF-16; save it in UTF-8")

// Check returns nil if Read would accept the file. It is for files that another package
// reads. Errors: those of Read.
func Check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return checkPermissions(f, path)
}

// checkPermissions checks the open file, so that the checked file is the one that is read.
func checkPermissions(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0 {
		return nil // a folder can't be read, and the mode of a device says nothing
	}
	owner, group := uint32(0), uint32(0)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		owner, group = stat.Uid, stat.Gid
	}
	mode := info.Mode().Perm()
	if !isExposed(mode, owner) {
		return nil
	}
	return &ExposedError{path, mode, remedy(path, mode, owner, group)}
}

// isExposed reports whether others may read or write the file. Those who can write to it
// could replace the secret.
func isExposed(mode fs.FileMode, owner uint32) bool { return mode&^widestMode(owner) != 0 }

// widestMode returns the widest permissions that are accepted.
func widestMode(owner uint32) fs.FileMode {
	if owner == 0 {
		return 0o740
	}
	return 0o700
}

// remedy returns the command that fixes the permissions. It keeps the file readable for this
// process.
func remedy(path string, mode fs.FileMode, owner, group uint32) string {
	self := uint32(os.Geteuid())
	chmod := fmt.Sprintf("chmod %04o %s", mode&widestMode(owner), quote(path))
	switch {
	case self == 0, owner == self, owner == 0 && mode&0o040 != 0 && isMember(group):
		return chmod
	}
	return fmt.Sprintf("chown root:%s %s && chmod 0640 %[2]s", groupName(os.Getegid()), quote(path))
}

// isMember reports whether the process is in the group.
func isMember(group uint32) bool {
	groups, err := os.Getgroups()
	return os.Getegid() == int(group) || err == nil && slices.Contains(groups, int(group))
}

func groupName(id int) string {
	if g, err := user.LookupGroupId(strconv.Itoa(id)); err == nil {
		return g.Name
	}
	return strconv.Itoa(id)
}

// quote returns the path quoted for a shell where necessary, and not to be taken for an
// option.
func quote(path string) string {
	isPlain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+:@%,", r)
	}
	if path != "" && path[0] != '-' && strings.IndexFunc(path, func(r rune) bool { return !isPlain(r) }) < 0 {
		return path
	}
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
