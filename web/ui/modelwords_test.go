package ui_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/web/ui/uitest"
)

// ofBuiltInActions matches the messages that describe the actions of the built-in model. They are
// shown only while it is in force.
var ofBuiltInActions = regexp.MustCompile(`^(can|did)\.(message|report|billing|data)\.|^roles\.word\.(message|report|billing|data) `)

// No other text of pages and mails names them, nor what the built-in roles may do.
func TestTextsOfAnyModel(t *testing.T) {
	var texts []string
	for _, pattern := range []string{"../*/text/*.txt", "../../app/mail/text/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 2 {
			t.Fatalf("%s finds %v, %v", pattern, found, err)
		}
		texts = append(texts, found...)
	}
	for _, file := range texts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "#") || ofBuiltInActions.MatchString(line) {
				continue
			}
			if found := uitest.BuiltInWords.FindString(line); found != "" {
				t.Errorf("%s: %q in %s", file, found, line)
			}
		}
	}
	if !uitest.BuiltInWords.MatchString("Users send messages and view reports.") {
		t.Error("the words of the built-in model are not found")
	}
}
