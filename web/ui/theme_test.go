package ui

import (
	"os"
	"strings"
	"testing"
)

// A style sheet in a theme doesn't depend on the theme that the system prefers.
func TestThemedSheetsIgnoreTheSystem(t *testing.T) {
	css, err := os.ReadFile("assets/ui.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, theme := range themes[1:] {
		for _, sheet := range []string{string(css), AccentSheet("#ffd400")} {
			got := inTheme(sheet, theme)
			if strings.Contains(got, "prefers-color-scheme") || strings.Contains(got, "light dark") {
				t.Errorf("%s still depends on the system", theme)
			}
			if want := map[string]string{"light": "@media not all", "dark": "@media all"}[theme]; !strings.Contains(got, want) {
				t.Errorf("%s has no %q", theme, want)
			}
		}
	}
}

// Buttons have the accent unchanged: yellow stays yellow, with black text.
func TestFillIsTheAccentItself(t *testing.T) {
	for accent, on := range map[string]string{"#ffd400": "#000000", "#112233": "#ffffff"} {
		if sheet := AccentSheet(accent); !strings.Contains(sheet, "--fill: "+accent+"; --on-fill: "+on+";") {
			t.Errorf("%s:\n%s", accent, sheet)
		}
	}
}

func TestThemeOfACookie(t *testing.T) {
	for kept, want := range map[string]string{"": "", "dark": "dark", "light": "light", "system": "", "x": ""} {
		if got := themeOf(kept); got != want {
			t.Errorf("%q is %q, want %q", kept, got, want)
		}
	}
}
