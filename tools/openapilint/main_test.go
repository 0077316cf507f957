package main

import (
	"context"
	"os"
	"strings"
	"testing"
)

// sound is a document that breaks no rule; each case below breaks it once.
func sound(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/sound.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSoundDocumentPasses(t *testing.T) {
	findings, err := lint(context.Background(), "sound.json", strings.NewReader(sound(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		t.Error(finding)
	}
}

func TestEachFaultIsNamed(t *testing.T) {
	for _, fault := range []struct{ rule, old, new string }{
		{"validation-required-field", `"title": "Sound", `, ``},
		{"validation-type-mismatch", `"required": ["email"]`, `"required": "email"`},
		{"validation-operation-id-unique", `"operationId": "endSession"`, `"operationId": "invite"`},
		{"semantic-path-params", `"in": "path", "name": "id"`, `"in": "path", "name": "key"`},
		{"semantic-unused-component", `"schemas": {`, `"schemas": {"Orphan": {"type": "string"},`},
		{"style-operation-tag-defined", `"tags": ["sessions"]`, `"tags": ["elsewhere"]`},
		{"style-operation-description", `"summary": "End a session",`, ``},
		{"style-oas3-parameter-description", `"description": "The session's id",`, ``},
		{"owasp-rate-limit-retry-after", `"Retry-After"`, `"X-Later"`},
		{"owasp-protection-global-unsafe", `"security": [{"session": []}],`, ``},
		{"oas3-no-nullable", `"format": "email"`, `"format": "email", "nullable": true`},
	} {
		t.Run(fault.rule, func(t *testing.T) {
			broken := strings.Replace(sound(t), fault.old, fault.new, 1)
			if broken == sound(t) {
				t.Fatalf("testdata/sound.json has no %q to break", fault.old)
			}
			findings, err := lint(context.Background(), "broken.json", strings.NewReader(broken))
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(findings, "\n"); !strings.Contains(all, " "+fault.rule+" ") {
				t.Errorf("not found; all findings:\n%s", all)
			}
		})
	}
}

func TestOtherTextDoesNotPass(t *testing.T) {
	for _, text := range []string{"", "{", "[]"} {
		findings, err := lint(context.Background(), "x", strings.NewReader(text))
		if err == nil && len(findings) == 0 {
			t.Errorf("%q passed as a sound document", text)
		}
	}
}
