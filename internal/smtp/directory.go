package smtp

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A directory is the transport that writes mails to files, for another program or a
// test. Lines end with LF, as in a Maildir, so that grep -x works; mail parsers accept it.
type directory struct {
	path string
	from *mail.Address

	mu   sync.Mutex
	last int64 // the time in the newest name, nanoseconds since 1970
}

var (
	errNoDirectory  = errors.New("mail destination: write file:DIR with the name of a directory, as in file:/var/spool/doorward or file:mails")
	errDirectoryURL = errors.New("mail destination: the directory follows file: directly and is not a URL: write file:/absolute/directory or file:relative/directory")
)

func openDirectory(path string, from *mail.Address) (Transport, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, errNoDirectory
	}
	if strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") {
		return nil, errDirectoryURL // in a URL, file://mails names the host mails
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("mail destination: %w", err)
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("mail destination: %s is not a directory", path)
	}
	return &directory{path: path, from: from}, nil
}

// create makes the directory if it doesn't exist, for its owner only: mails hold links
// that give access.
func (d *directory) create() error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("mail directory: %w", err)
	}
	return nil
}

func (d *directory) Send(ctx context.Context, m Message) error {
	l, err := newLetter(d.from, m)
	if err != nil {
		return err
	}
	const eightBit = true // a file can hold any bytes
	raw, err := l.bytes(eightBit)
	if err != nil {
		return err
	}
	if err := d.create(); err != nil {
		return err
	}
	temporary, err := write(ctx, d.path, bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")))
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(d.path, d.newName())); err != nil {
		return fmt.Errorf("mail directory: %w", errors.Join(err, os.Remove(temporary)))
	}
	d.sync()
	return nil
}

func (d *directory) Check(ctx context.Context) error {
	probe, err := write(ctx, nearestExisting(d.path), []byte("Doorward tries whether it can write here.\n"))
	if err != nil {
		return err
	}
	if err := os.Remove(probe); err != nil {
		return fmt.Errorf("mail directory: %w", err)
	}
	return nil
}

// nearestExisting returns the directory, or its nearest existing parent.
func nearestExisting(path string) string {
	for {
		_, err := os.Stat(path)
		parent := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || parent == path {
			return path
		}
		path = parent
	}
}

// write writes content to a new temporary file (.*.tmp) and syncs it. A crash can leave
// such a file behind; no mail in it was reported as sent.
func write(ctx context.Context, dir string, content []byte) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("mail directory: %w", err)
	}
	f, err := os.CreateTemp(dir, ".*.tmp") // mode 0600
	if err != nil {
		return "", fmt.Errorf("mail directory: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("mail directory: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return f.Name(), nil
}

const timeFormat = "20060102T150405.000000000Z"

// newName returns a name that sorts by time, within this process even if the clock stops or
// steps back. It has 128 random bits (rand.Text), so that a rename never replaces another
// process's mail.
func (d *directory) newName() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = max(time.Now().UnixNano(), d.last+1)
	return time.Unix(0, d.last).UTC().Format(timeFormat) + "-" + rand.Text() + ".eml"
}

// sync makes the new name survive a crash, if the file system supports it. Errors are
// ignored, because some network and shared folders refuse: a visible mail must not be
// reported as failed, or it would be sent repeatedly.
func (d *directory) sync() {
	f, err := os.Open(d.path)
	if err != nil {
		return
	}
	_ = f.Sync()
	_ = f.Close()
}
