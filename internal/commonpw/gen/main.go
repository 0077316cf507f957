// Gen writes the bundled list of common passwords, and its license, into the
// directory above. It is run by
//
//	go generate ./internal/commonpw
//
// and needs npm, through which it fetches one pinned version of one package
// and checks it against a pinned hash; nothing of the package is executed.
// To move to a newer version, change the two constants and read the diff of
// passwords.txt.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/internal/commonpw"
)

const (
	source = "@zxcvbn-ts/language-common@4.1.3"
	sum    = "bf3027c16c069d7877e25dc8751bc819e10e479afcc5ee1a323eb2ab73129ca9" // SHA-256 of the tarball

	// minLength is in code points. Shorter passwords are refused for their length
	// anyway. Of the shorter entries, those that can be the commonpw.Word of a longer
	// password are kept: commonpw.MinWord or more, with letters at both ends.
	minLength = 8
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("commonpw/gen: ")
	if err := run("."); err != nil { // go generate runs in the package's directory
		log.Fatal(err)
	}
}

func run(dir string) error {
	tarball, err := fetch()
	if err != nil {
		return err
	}
	files, err := unpack(tarball, "package/src/passwords.json", "package/LICENSE.txt")
	if err != nil {
		return err
	}
	list, err := convert(files[0])
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "passwords.txt"), list, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "passwords.LICENSE.txt"), files[1], 0o644)
}

// fetch returns the package's tarball from npm, with a verified hash.
func fetch() ([]byte, error) {
	dir, err := os.MkdirTemp("", "commonpw")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	npm := exec.Command("npm", "pack", "--silent", "--pack-destination", dir, source)
	npm.Stderr = os.Stderr
	name, err := npm.Output()
	if err != nil {
		return nil, fmt.Errorf("npm pack %s: %w", source, err)
	}
	tarball, err := os.ReadFile(filepath.Join(dir, filepath.Base(strings.TrimSpace(string(name)))))
	if err != nil {
		return nil, err
	}
	return tarball, check(tarball)
}

func check(tarball []byte) error {
	got := sha256.Sum256(tarball)
	if hex.EncodeToString(got[:]) != sum {
		return fmt.Errorf("the tarball of %s has SHA-256 %x, want %s", source, got, sum)
	}
	return nil
}

// unpack returns the contents of the named files, in that order.
func unpack(tarball []byte, names ...string) ([][]byte, error) {
	plain, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		return nil, err
	}
	files := make([][]byte, len(names))
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if i := slices.Index(names, header.Name); i >= 0 {
			if files[i], err = io.ReadAll(archive); err != nil {
				return nil, err
			}
		}
	}
	for i, file := range files {
		if file == nil {
			return nil, fmt.Errorf("the tarball of %s has no %s", source, names[i])
		}
	}
	return files, nil
}

// convert turns the dictionary, a JSON array of strings, into the form that package
// commonpw searches: folded, sorted bytewise, without duplicates, one per line.
func convert(dictionary []byte) ([]byte, error) {
	var words []string
	if err := json.Unmarshal(dictionary, &words); err != nil {
		return nil, err
	}
	var kept []string
	for _, word := range words {
		if strings.ContainsAny(word, "\r\n") {
			return nil, fmt.Errorf("a word with a line break in it: %q", word)
		}
		if word = strings.ToLower(norm.NFC.String(word)); isUseful(word) {
			kept = append(kept, word)
		}
	}
	if len(kept) == 0 {
		return nil, errors.New("the dictionary has no usable word")
	}
	slices.Sort(kept)
	return []byte(strings.Join(slices.Compact(kept), "\n") + "\n"), nil
}

func isUseful(word string) bool {
	length := utf8.RuneCountInString(word)
	return length >= minLength || length >= commonpw.MinWord && commonpw.Word(word) == word
}
