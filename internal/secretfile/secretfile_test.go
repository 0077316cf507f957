package secretfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the id of a user without rights, and of its group.
const nobody = 65534

// TestWhatOthersMayRead uses the real mode and owner of files. Without root it covers
// only the current user's files.
func TestWhatOthersMayRead(t *testing.T) {
	for _, test := range []struct {
		owner   int
		mode    fs.FileMode
		refused bool
	}{
		{0, 0o600, false},
		{0, 0o400, false},
		{0, 0o640, false},
		{0, 0o440, false},
		{0, 0o644, true},
		{0, 0o604, true},
		{0, 0o444, true},
		{0, 0o660, true},
		{0, 0o602, true},
		{nobody, 0o600, false},
		{nobody, 0o400, false},
		{nobody, 0o640, true},
		{nobody, 0o644, true},
		{nobody, 0o620, true},
	} {
		if os.Geteuid() != 0 && test.owner == 0 {
			continue
		}
		t.Run(fmt.Sprintf("%d %04o", test.owner, test.mode), func(t *testing.T) {
			file := writeSecret(t, test.owner, test.mode)
			text, err := Read(file)
			var exposed *ExposedError
			if errors.As(err, &exposed) != test.refused || err != nil && !test.refused {
				t.Fatalf("%q, %v", text, err)
			}
			if again := Check(file); (again == nil) != (err == nil) {
				t.Errorf("Check says %v, Read %v", again, err)
			}
			if !test.refused {
				if string(text) != "SESAME\n" {
					t.Errorf("read %q", text)
				}
				return
			}
			if strings.Contains(err.Error(), "SESAME") || len(text) > 0 {
				t.Errorf("the error contains the secret: %v", err)
			}
			checkRemedy(t, exposed.Remedy, file)
		})
	}
}

// writeSecret makes a file with this mode and, if the test runs as root, this owner.
func writeSecret(t *testing.T, owner int, mode fs.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "it's a secret")
	if err := os.WriteFile(file, []byte("SESAME\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(file, owner, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// checkRemedy runs the suggested command, after which the file is readable.
func checkRemedy(t *testing.T, remedy, file string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", remedy).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", remedy, err, out)
	}
	if text, err := Read(file); err != nil || string(text) != "SESAME\n" {
		t.Errorf("after %s: %q, %v", remedy, text, err)
	}
}

// TestRemedyKeepsTheService: the suggested command doesn't lock out a service that
// reads the file as "others".
func TestRemedyKeepsTheService(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run a process as another user")
	}
	for _, test := range []struct {
		owner, group int
		mode         fs.FileMode
		remedy       string
	}{
		{nobody, nobody, 0o644, "chmod 0600 %s"},
		{0, nobody, 0o644, "chmod 0640 %s"},
		{0, nobody, 0o444, "chmod 0440 %s"},
		{0, 0, 0o644, "chown root:65534 %s && chmod 0640 %[1]s"},
		{1234, 1234, 0o644, "chown root:65534 %s && chmod 0640 %[1]s"},
	} {
		file := filepath.Join(t.TempDir(), "secret")
		err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chown(file, test.owner, test.group), os.Chmod(file, test.mode), makePassable(file))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(test.remedy, file)
		got := checkAsNobody(t, file)
		if name := groupName(nobody); !strings.HasSuffix(got, strings.ReplaceAll(want, "root:65534", "root:"+name)) {
			t.Errorf("%d:%d %04o: %q, want %q", test.owner, test.group, test.mode, got, want)
		}
	}
}

// makePassable lets others traverse the folders to the file.
func makePassable(file string) error {
	for folder := filepath.Dir(file); folder != "/"; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err == nil && info.Mode()&0o055 != 0o055 {
			err = os.Chmod(folder, info.Mode()|0o055)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fileVariable is the environment variable with the file for the other user's process.
const fileVariable = "DOORWARD_TEST_SECRET_FILE"

// checkAsNobody calls Check as the user nobody and returns the suggested command.
func checkAsNobody(t *testing.T, file string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "test")
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Skip("needs /proc/self/exe, to start this program again")
	}
	defer self.Close()
	if err := errors.Join(copyTo(program, self), makePassable(program)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestAsAnotherUser$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), fileVariable+"="+file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(out)), "PASS"))
}

func copyTo(name string, from *os.File) error {
	to, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = to.ReadFrom(from)
	return errors.Join(err, to.Close())
}

// TestAsAnotherUser runs in the process that checkAsNobody starts.
func TestAsAnotherUser(t *testing.T) {
	file := os.Getenv(fileVariable)
	if file == "" {
		t.Skip("is started by TestRemedyKeepsTheService")
	}
	var exposed *ExposedError
	if err := Check(file); !errors.As(err, &exposed) {
		t.Fatal(err)
	}
	fmt.Println(exposed.Remedy)
}

// TestPipesAndLinks: a pipe, such as a shell's <(…), is read, and a link is checked by
// its target, as in a Kubernetes volume.
func TestPipesAndLinks(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := write.WriteString("SESAME\n"); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if text, err := Read(fmt.Sprintf("/dev/fd/%d", read.Fd())); err != nil || string(text) != "SESAME\n" {
		t.Errorf("from a pipe %q, %v", text, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(writeSecret(t, os.Geteuid(), 0o644), link); err != nil {
		t.Fatal(err)
	}
	if err := Check(link); err == nil {
		t.Error("a link to an exposed file is accepted")
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("for a missing file: %v", err)
	}
}

// Editors of Windows begin a file with a byte order mark, or save it in UTF-16.
func TestByteOrderMarks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	for content, want := range map[string]string{"\xef\xbb\xbfSESAME\r\n": "SESAME\r\n", "SESAME": "SESAME", "\xef\xbb\xbf": "", "\xff\xfeS\x00": "", "\xfe\xff\x00S": ""} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := Read(file)
		if isUTF16 := content[0] >= 0xfe; string(text) != want || errors.Is(err, ErrEncoding) != isUTF16 {
			t.Errorf("%q: read %q, %v", content, text, err)
		}
	}
}
