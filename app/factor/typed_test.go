package factor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
)

// TestTyped: a code is read as people type or paste it, and a text that can't be one is refused with the
// field that it was sent in.
func TestTyped(t *testing.T) {
	const recovery = "OI234567ABCDEFGHJKLMNPQR"
	for typed, want := range map[string]string{
		"123456": "123456", " 123 456 ": "123456", "123\u00a0456\r\n": "123456", "123-456": "123456", "12–34—56": "123456", "123\u2212456": "123456",
		"\u200b123456\ufeff": "123456", "１２３ ４５６": "123456", "٠١٢٣٤٥": "012345", "۰۱۲۳۴۵": "012345", "०१२३४५": "012345", "𝟎𝟏𝟐𝟑𝟒𝟓": "012345",
		"O12345": "012345", "ol2 34I": "012341", "123\u30fc456": "123456", "123·456": "123456", "1\ufe0f23\u2800456": "123456",
		"12345": "", "1234567": "", "12345a": "", "": "", "١٢٣٤٥x": "", strings.Repeat(" ", 300) + "123456": "",
	} {
		got, err := factor.Answer{Code: typed}.Typed()
		if want == "" {
			wantFault(t, typed, err, "/code")
		} else if err != nil || got.Code != want {
			t.Errorf("%q is read as %q, %v", typed, got.Code, err)
		}
	}
	for typed, want := range map[string]string{
		recovery: recovery, strings.ToLower(recovery): recovery, "0123-4567-ABCD-EFGH-JKLM-NPQR": recovery, "ＯＩ２３４５６７ abcd efgh\njklm\tnpqr": recovery,
		"OI23\u201045 67ABCDEFGHJKLMNPQR\r\n": recovery, "۰۱۲۳-४५६७-ABCD-EFGH-JKLM-NPQR": recovery, "OI23・4567\u30fcABCD EFGH JKLM NPQR": recovery,
		recovery[1:]: "", recovery + "A": "", "8" + recovery[1:]: "", "é" + recovery[1:]: "", "ÄÖ" + recovery[4:]: "",
	} {
		got, err := factor.Answer{RecoveryCode: typed}.Typed()
		if want == "" {
			wantFault(t, typed, err, "/recoveryCode")
		} else if err != nil || got.RecoveryCode != want {
			t.Errorf("%q is read as %q, %v", typed, got.RecoveryCode, err)
		}
	}
}

func wantFault(t *testing.T, typed string, err error, pointer string) {
	t.Helper()
	var fault *doorward.Error
	if !errors.As(err, &fault) || len(fault.Fields) != 1 || fault.Fields[0].Pointer != pointer || fault.Fields[0].Code != "invalid" {
		t.Errorf("%q: %v", typed, err)
	}
}

// TestTypedWrongIsNoTry: a text that can't be a code takes no try of the challenge and isn't counted
// against the account.
func TestTypedWrongIsNoTry(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		app := f.Enrol(&ann)
		token := f.Challenge(apptest.Anonymous(1), ann).Token.Reveal()
		second := func(a factor.Answer) error {
			return apptest.ErrorOf(f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(1), token, a, rememberDevice))
		}
		for range 20 {
			wantFault(t, "a word", second(factor.Answer{Code: "word"}), "/code")
			wantFault(t, "a word", second(factor.Answer{RecoveryCode: "word"}), "/recoveryCode")
		}
		f.NoError(second(factor.Answer{Code: app.Code(f.DB.Now())}))
	})
}
