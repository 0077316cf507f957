// Package uitest renders pages with canned data, for Chromium to check (e2e) and for design work:
// "make pages". It needs no server and no database.
package uitest

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/web/ui"
)

// renderDir is where "make pages" puts every page, to be opened in a browser.
var renderDir = flag.String("render", "", "folder to write every page to")

// Sample is a page in a state. Only what differs in the frame is set.
type Sample struct {
	Name  string
	View  ui.View
	Frame ui.Frame
	// Opened are texts of the HTML and what replaces the first of each, for what a person opens or
	// chooses on the page; without one of them the test fails.
	Opened [][2]string
}

// Noon is the current time in every sample.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Pages renders the samples in every language, and fails the test for each that
// can't be rendered, or if its title has a name in place of its value. With -render it writes them to the folder name below that of the flag,
// with the assets and the files, which are given by their names.
func Pages(t *testing.T, set *ui.Set, name string, samples []Sample, files map[string][]byte) {
	t.Helper()
	RequireEachTemplate(t, "html", samples)
	index := "<!doctype html><title>Pages</title><ul>"
	for _, l := range ui.Languages {
		for _, s := range samples {
			page := Rendered(t, set, s, l)
			if title := unfilled.FindString(page); title != "" {
				t.Errorf("%s in %s: a part of the title isn't filled in: %s", s.Name, l.Tag, title)
			}
			file := l.Tag + "-" + s.Name + ".html"
			Write(t, filepath.Join(name, file), withRelativeLinks(file, opened(t, s, page)))
			index += `<li><a href="` + file + `">` + file + "</a>"
		}
	}
	Write(t, filepath.Join(name, "index.html"), []byte(index))
	for file, body := range files {
		Write(t, filepath.Join(name, file), body)
	}
	for _, folder := range []string{"assets", "../hosted/assets", "../ui/assets"} { // the first is of the tested package, and may be missing
		copyAll(t, folder, filepath.Join(name, "assets"))
	}
}

// RequireEachTemplate fails the test for each template in the folder that no sample shows.
func RequireEachTemplate(t *testing.T, folder string, samples []Sample) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.html"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in %s: %v", folder, err)
	}
	shown := map[string]bool{"layout": true, "parts": true, "signon": true}
	for _, s := range samples {
		shown[s.View.Page] = true
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".html"); !shown[name] {
			t.Errorf("%s is in no sample, so Chromium checks neither its colours nor its width: add one to samples_test.go", file)
		}
	}
}

// DrawLogo returns a logo: a disc, and bars in place of letters.
func DrawLogo(width, height int) (l doorward.Logo, stored []byte) {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		x, y := i%width, i/width
		switch dx, dy := x-height/2, y-height/2; {
		case dx*dx+dy*dy < height*height/5:
			img.Set(x, y, color.NRGBA{214, 58, 47, 255})
		case x > height*6/5 && x < width-4 && y > height/4 && y < height*3/4 && (x/(height/4))%2 == 0:
			img.Set(x, y, color.NRGBA{24, 26, 34, 255})
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // into memory
	l, stored, _ = tenant.MakeLogo(out.Bytes())
	return l, stored
}

// AccentFile is where Pages must find the style sheet of an accent colour.
func AccentFile(accent string) string { return "assets/accents/" + accent[1:] + ".css" }

// FrameOf returns the complete frame of a sample.
func FrameOf(s Sample, l ui.Language) ui.Frame {
	f := s.Frame
	f.View, f.Language, f.Now, f.Base = s.View, l, Noon, ""
	if f.Brand.Name == "" {
		f.Brand.Name = "Doorward"
	}
	f.File = func(name string) string { return name }
	for _, other := range ui.Languages {
		c := ui.Choice{Language: other, Link: "?lang=" + other.Tag}
		if other == l {
			c.Link = ""
		}
		f.Languages = append(f.Languages, c)
	}
	f.Themes = []ui.ThemeChoice{{Name: "system"}, {Name: "light", Link: "?theme=light"}, {Name: "dark", Link: "?theme=dark"}}
	return f
}

// opened returns the page as it is once a person has opened or chosen something.
func opened(t *testing.T, s Sample, page string) string {
	t.Helper()
	for _, one := range s.Opened {
		if !strings.Contains(page, one[0]) {
			t.Errorf("%s has no %q to open", s.Name, one[0])
		}
		page = strings.Replace(page, one[0], one[1], 1)
	}
	return page
}

// withRelativeLinks makes the links to style sheets and other languages relative, for reading
// from disk.
func withRelativeLinks(file, page string) []byte {
	return []byte(strings.NewReplacer(`="/assets/`, `="assets/`, `href="?lang=de"`, `href="de-`+file[3:]+`"`, `href="?lang=en"`, `href="en-`+file[3:]+`"`).Replace(page))
}

func copyAll(t *testing.T, from, to string) {
	t.Helper()
	names, err := fs.Glob(os.DirFS(from), "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		body, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		Write(t, filepath.Join(to, name), body)
	}
}

// Write writes a file below the folder of -render. Without the flag it does nothing.
func Write(t *testing.T, name string, body []byte) {
	t.Helper()
	if *renderDir == "" {
		return
	}
	path := filepath.Join(*renderDir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
}
