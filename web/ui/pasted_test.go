package ui

import "testing"

// A code or link from a mail is read whatever copying has put into it.
func TestPastedCode(t *testing.T) {
	const code = "Ab-_9"
	for pasted, want := range map[string]string{
		code: code, " Ab-\r\n_9\t": code, "Ab\u00a0-_9": code, "https://door.example/accept#token=Ab-_9": code, "https://door.example/accept#tok\nen=Ab-_9": code,
		"\ufeffAb-\u200b_9": code, "Ab\u00ad-_9\u2060": code, "<https://door.example/reset#token=Ab-_9>": code, "(Ab-_9)": "(Ab-_9)", "": "",
	} {
		if got := PastedCode(pasted); got != want {
			t.Errorf("%+q is read as %+q, want %+q", pasted, got, want)
		}
	}
}
