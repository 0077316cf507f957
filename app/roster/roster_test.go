package roster

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/mailaddr"
)

const (
	bcrypt = "$2b$06$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES"
	scrypt = "$scrypt$ln=8,r=8,p=1$WKs1xljLudd6z9kbY0wpJQ$yCR4iDZYDKv+iEJj6yHY0lv/epnfB6f/w1EbXrsJOuQ"
)

func read(t *testing.T, format Format, text string) List {
	t.Helper()
	list, err := Read(strings.NewReader(text), format)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var ann = Person{Email: "ann@acme.example", Name: "Ann", Role: doorward.RoleOwner, Status: doorward.UserActive, PasswordHash: bcrypt}

func TestPeople(t *testing.T) {
	plain := Person{Email: "ann@acme.example", Role: doorward.RoleUser, Status: doorward.UserActive}
	for _, test := range []struct {
		name   string
		format Format
		text   string
		line   int
		want   Person
	}{
		{"columns in another order", CSV, "passwordHash,role,name,email\n" + bcrypt + ",OWNER,Ann,ann@acme.example\n", 2, ann},
		{"required columns only", CSV, "email,role\nann@acme.example,USER", 2, plain},
		{"byte order mark", CSV, "\ufeffemail,role\r\nann@acme.example,USER\r\n", 2, plain},
		{"semicolons", CSV, "role;email\nUSER;ann@acme.example\n", 2, plain},
		{"tabs", CSV, "role\temail\nUSER\tann@acme.example\n", 2, plain},
		{"a hash with commas", CSV, "email,role,passwordHash\nann@acme.example,USER,\"" + scrypt + "\"\n", 2, Person{0, plain.Email, "", plain.Role, plain.Status, scrypt}},
		{"empty lines", CSV, "\n\nemail,role\n\n\nann@acme.example,USER\n\n", 6, plain},
		{"suspended", CSV, "email,role,status\nann@acme.example,USER,suspended\n", 2, Person{0, plain.Email, "", plain.Role, doorward.UserSuspended, ""}},
		{"an address as people type it", CSV, "email,role\nAnn@ACME.Example,USER\n", 2, plain},
		{"an object", JSONLines, `{"name":"Ann","email":"ann@acme.example","role":"OWNER","status":"active","passwordHash":"` + bcrypt + `"}`, 1, ann},
		{"required members only", JSONLines, "\r\n\n" + `{"email":"ann@acme.example","role":"USER"}` + "\r\n", 3, plain},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := test.want
			want.Line = test.line
			if diff := cmp.Diff(List{People: []Person{want}}, read(t, test.format, test.text)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

// positions returns the position and the code of each fault.
func positions(list List) (all []string) {
	for _, f := range list.Faults.Listed {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s", f.Line, f.Code, f.Column)))
	}
	return all
}

func TestFaults(t *testing.T) {
	long := strings.Repeat("x", MaxRow)
	for _, test := range []struct {
		name   string
		format Format
		text   string
		want   []string
	}{
		{"nothing", CSV, "", []string{"1 required"}},
		{"only a header", CSV, "email,role\n", nil},
		{"no header", CSV, "ann@acme.example,USER\n", []string{"1 unknown_column", "1 unknown_column", "1 required email", "1 required role"}},
		{"an unknown column", CSV, "email,role,password_hash\n", []string{"1 unknown_column"}},
		{"a column in capitals", CSV, "Email,role\n", []string{"1 unknown_column", "1 required email"}},
		{"a column twice", CSV, "email,role,email\n", []string{"1 duplicate email"}},
		{"UTF-16", CSV, "\xff\xfee\x00", []string{"1 invalid"}},
		{"another encoding", CSV, "email,role,name\nann@acme.example,USER,Andr\xe9\n", []string{"2 invalid"}},
		{
			"a fault in each row", CSV, "email,role,name,status,passwordHash\n" +
				"ann,BOSS," + strings.Repeat("x", 101) + ",asleep,hunter2\n" +
				",,,,\n" +
				"bob@acme.example,USER,,,\n" +
				"BOB@acme.example,USER,,,\n" +
				"cat@acme.example,user,,,\n" +
				"dan@acme.example,USER,\"two\nlines\",,\n" +
				"eve@acme.example,USER\n" +
				"fay@acme.example,USER,Fay \"x\",,\n" +
				"gil@acme.example,USER,,,$6$salt$hash\n" +
				"hal@acme.example,USER,,,\n",
			[]string{
				"2 invalid email", "2 out_of_range name", "2 invalid status", "2 invalid passwordHash",
				"3 required email", "3 required role", "5 duplicate email", "7 invalid name",
				"9 invalid", "10 invalid", "11 invalid passwordHash",
			},
		},
		{"a quotation mark left open", CSV, "email,role\n\"ann@acme.example,USER\nbob@acme.example,USER\n", []string{"2 invalid"}},
		{"a long row", CSV, "email,role\n" + long + ",USER\nann,USER\n", []string{"2 too_long", "3 invalid email"}},
		{"no lines", JSONLines, "\n", []string{"0 required"}},
		{
			"objects", JSONLines, "[]\n{\n" + `{"email":"ann@acme.example","role":"USER","rank":1}
{"email":"ann@acme.example","role":"USER","role":"OWNER"}
{"email":7,"role":"USER"}
{"email":"ann@acme.example","role":null}
{"Email":"ann@acme.example","role":"USER"}
{"email":"ann@acme.example","role":"USER"} {"email":"bob@acme.example","role":"USER"}
` + `{"name":"` + long + "\"}\n\ufeff{}\n" + `{"role":"USER"}`,
			[]string{
				"1 invalid", "2 invalid", "3 invalid", "4 invalid role", "5 invalid email", "6 invalid role",
				"7 invalid", "8 invalid", "9 too_long", "10 invalid", "11 required email",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			list := read(t, test.format, test.text)
			if diff := cmp.Diff(test.want, positions(list)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			for _, f := range list.Faults.Listed {
				if !strings.HasSuffix(f.Message, ".") || strings.Contains(f.Message, "hunter2") {
					t.Errorf("%q is not a sentence, or contains a secret", f.Message)
				}
			}
		})
	}
}

// TestFormatsOfHashesAreNamed: the fault of an unknown format lists the supported ones.
func TestFormatsOfHashesAreNamed(t *testing.T) {
	list := read(t, CSV, "email,role,passwordHash\nann@acme.example,USER,5f4dcc3b5aa765d61d8327deb882cf99\n")
	for _, name := range []string{"bcrypt", "scrypt", "pbkdf2", "argon2id", "Django"} {
		if !strings.Contains(list.Faults.Listed[0].Message, name) {
			t.Errorf("no %s in %q", name, list.Faults.Listed[0].Message)
		}
	}
}

func TestLimits(t *testing.T) {
	faulty := read(t, CSV, "email,role\n"+strings.Repeat("nobody,USER\n", MaxFaults+5))
	if len(faulty.Faults.Listed) != MaxFaults || faulty.More != 5 {
		t.Errorf("%d faults and %d more", len(faulty.Faults.Listed), faulty.More)
	}
	if err := faulty.Err(); err == nil || !strings.Contains(err.Error(), "105 faults") {
		t.Errorf("the error is %v", err)
	}

	var most bytes.Buffer
	most.WriteString("email,role\n")
	for i := range MaxPeople {
		fmt.Fprintf(&most, "p%d@acme.example,USER\n", i)
	}
	if list := read(t, CSV, most.String()); len(list.People) != MaxPeople || list.Err() != nil {
		t.Errorf("%d people, %v", len(list.People), list.Err())
	}
	most.WriteString("one@acme.example,USER\nanother@acme.example,USER\n")
	if got := positions(read(t, CSV, most.String())); !cmp.Equal(got, []string{"100002 too_many"}) {
		t.Errorf("one too many: %q", got)
	}

	if got := positions(read(t, CSV, strings.Repeat("x", MaxBytes+1))); !cmp.Equal(got, []string{"0 too_long"}) {
		t.Errorf("a file too long: %q", got)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

func TestReadError(t *testing.T) {
	if _, err := Read(broken{}, CSV); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("the error is %v", err)
	}
}

// TestRoundTrip: Read returns what Write wrote.
func TestRoundTrip(t *testing.T) {
	want := []Person{ann, {Email: "bob@acme.example", Name: "<Bob> \"& é", Role: doorward.RoleViewer, Status: doorward.UserSuspended}}
	var text bytes.Buffer
	for _, p := range want {
		if err := Write(&text, p); err != nil {
			t.Fatal(err)
		}
	}
	got := read(t, JSONLines, text.String())
	if diff := cmp.Diff(List{People: want}, got, cmpopts.IgnoreFields(Person{}, "Line")); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// FuzzRead: each person that Read accepts from any file is valid as Person says,
// has a unique address, and is accepted again after Write.
func FuzzRead(f *testing.F) {
	f.Add("email,role,name,status,passwordHash\nann@acme.example,USER,Ann,active,"+bcrypt+"\n", true)
	f.Add("\ufeffrole;email\nUSER;\"a\n@b.example\"\n", true)
	f.Add("email,role\n\"", true)
	f.Add(`{"email":"ann@acme.example","role":"USER"}`, false)
	f.Add("{\"email\":\"ann@acme.example\",\"role\":\"USER\",\"name\":\"\\ud800\"}\n{}", false)
	f.Fuzz(func(t *testing.T, text string, csv bool) {
		format := JSONLines
		if csv {
			format = CSV
		}
		list := read(t, format, text)
		lines, seen := strings.Count(text, "\n")+1, map[string]bool{}
		var again bytes.Buffer
		for _, p := range list.People {
			checkValid(t, p)
			if p.Line < 1 || p.Line > lines || seen[p.Email] {
				t.Fatalf("line %d of %d, address %q", p.Line, lines, p.Email)
			}
			seen[p.Email] = true
			if err := Write(&again, p); err != nil {
				t.Fatal(err)
			}
		}
		for _, fault := range list.Faults.Listed {
			if fault.Line < 0 || fault.Line > lines || fault.Code == "" || fault.Message == "" {
				t.Fatalf("a fault of %d lines: %+v", lines, fault)
			}
		}
		if len(list.People) == 0 {
			return
		}
		if diff := cmp.Diff(List{People: list.People}, read(t, JSONLines, again.String()), cmpopts.IgnoreFields(Person{}, "Line")); diff != "" {
			t.Fatalf("written and read again (-want +got):\n%s", diff)
		}
	})
}

func checkValid(t *testing.T, p Person) {
	t.Helper()
	canonical, err := mailaddr.Parse(p.Email)
	if err != nil || canonical != p.Email || p.Role == "" || len(doorward.CheckName("", &p.Name)) > 0 {
		t.Fatalf("%+v was accepted: %v", p, err)
	}
	if p.Status != doorward.UserActive && p.Status != doorward.UserSuspended {
		t.Fatalf("the status %q was accepted", p.Status)
	}
	if p.PasswordHash != "" && argon.CheckHash(p.PasswordHash) != nil {
		t.Fatalf("the hash %q was accepted", p.PasswordHash)
	}
}
