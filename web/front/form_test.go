package front

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"testing"
)

func TestFormsHaveAtMostMaxParts(t *testing.T) {
	for parts, accepted := range map[int]bool{0: true, maxParts: true, maxParts + 1: false} {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		for n := range parts {
			if err := w.WriteField(fmt.Sprint("x", n), "y"); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		values, _, err := splitForm(multipart.NewReader(&body, w.Boundary()), "file")
		if (err == nil) != accepted || accepted && len(values) != parts {
			t.Errorf("%d parts: %d values, error %v", parts, len(values), err)
		}
	}
}
