package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConvert(t *testing.T) {
	got, err := convert([]byte(`["Zebra123", "short", "short1", "3rd", "abc", "password", "PASSWORD", "e\u0301e\u0301e\u0301e\u0301", "pässwörd", "e\u0301te\u0301te\u0301te\u0301te\u0301"]`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("password\npässwörd\nshort\nzebra123\nétététété\néééé\n", string(got)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestConvertRefuses(t *testing.T) {
	for _, dictionary := range []string{"", "{}", "[1]", "[]", `["short1", "abc"]`, `["pass\nword"]`} {
		if got, err := convert([]byte(dictionary)); err == nil {
			t.Errorf("%s became %q, want an error", dictionary, got)
		}
	}
}

func TestCheckRefusesAnotherTarball(t *testing.T) {
	if check([]byte("something else")) == nil {
		t.Error("a tarball with another hash was accepted")
	}
}

func TestUnpack(t *testing.T) {
	tarball := pack(t, map[string]string{"package/a": "A", "package/b": "B"})
	got, err := unpack(tarball, "package/b", "package/a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]byte{[]byte("B"), []byte("A")}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := unpack(tarball, "package/c"); err == nil {
		t.Error("a missing file causes no error")
	}
}

func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
