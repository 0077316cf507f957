package argon

import (
	"strings"
	"testing"
)

const staple = "correct horse battery staple"

// vectors were all made by other programs, named in the comments.
var vectors = []struct{ name, phc, password string }{
	// The reference implementation's own tests: phc-winner-argon2, src/test.c.
	{"argon2id reference", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password"},
	// echo -n … | argon2 saltsaltsaltsalt -id -t 2 -k 19456 -p 1 -e
	{"argon2id cli", "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$QKHrg5tayLGcN+Y0HVPNaBqykOVLUxlMkZycXE1uWRM", staple},
	// echo -n … | argon2 saltsaltsaltsalt -id -t 3 -k 8192 -p 4 -e
	{"argon2id cli, 4 lanes", "$argon2id$v=19$m=8192,t=3,p=4$c2FsdHNhbHRzYWx0c2FsdA$lFqnE2wuNtGqprJXJ5xNDjBFat604UQgLi5jjKKBBQA", staple},

	// htpasswd -nbBC 6 (Apache)
	{"bcrypt 2y", "$2y$06$rzkPS/i1xtIjuEeqbHVAYeFM2JcwkxoZPZw2dTP/AWOaa.0jDBN9a", staple},
	// crypt(3) of libxcrypt
	{"bcrypt 2a", "$2a$06$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES", staple},
	{"bcrypt 2b", "$2b$06$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES", staple},
	{"bcrypt, 80 bytes", "$2b$06$abcdefghijklmnopqrstu.Iwh94H14lBZ1H.kFrv2amc9/9RZyQ16", strings.Repeat("é", 40)},

	// passlib's documentation of passlib.hash.scrypt
	{"scrypt passlib", "$scrypt$ln=8,r=8,p=1$WKs1xljLudd6z9kbY0wpJQ$yCR4iDZYDKv+iEJj6yHY0lv/epnfB6f/w1EbXrsJOuQ", "password"},
	// hashlib.scrypt (Python, OpenSSL); crypto.scryptSync (Node)
	{"scrypt python", "$scrypt$ln=14,r=8,p=1$+vn49/b19PPy8fDv7u3s6w$hZ/MDx2Co/P240yeA5bUGCAORzx8HHWM+7ckVjfiafM", staple},
	{"scrypt node", "$scrypt$ln=15,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$9rcVF+DZ8uU77qz3H/v29+n2g8c877AOCRXSQvC/fs0", staple},

	// passlib's documentation of passlib.hash.pbkdf2_sha256, and its tests
	{"pbkdf2-sha256 passlib", "$pbkdf2-sha256$6400$0ZrzXitFSGltTQnBWOsdAw$Y11AchqV4b0sUisdZd0Xr97KWoymNE0LNNrnEgY4H9M", "password"},
	{"pbkdf2-sha512 passlib", "$pbkdf2-sha512$1212$RHY0Fr3IDMSVO/RSZyb5ow$eNLfBK.eVozomMr.1gYa17k9B7KIK25NOEshvhrSX.esqY3s.FvWZViXz4KoLlQI.BzY/YTNJOiKc5gBYFYGww", "password"},
	// hashlib.pbkdf2_hmac (Python); crypto.pbkdf2Sync (Node)
	{"pbkdf2-sha256 python", "$pbkdf2-sha256$29000$.vn49/b19PPy8fDv7u3s6w$Hv4NnEud71XJdkFre9JY2ppEXEdfkyg3Spli7LIDxE4", staple},
	{"pbkdf2-sha512 python", "$pbkdf2-sha512$25000$.vn49/b19PPy8fDv7u3s6w$tGxph8r9A1uirdwD/0X5Mx6caGeSTU3RMziKcFTdjXL0eAC0Xm1yU8xVfm1xxiAoI8rRPyLkluOd6Z79cyp.VQ", staple},
	{"pbkdf2-sha512 node", "$pbkdf2-sha512$25000$MDEyMzQ1Njc4OWFiY2RlZg$1ghj0T0HZWch00LfnhjXx3er7ZDEEN1BF6pxsBlgz/d07d.Qxz5Kg1Oz9g8VdS6ebiSwisnASzPZrBoVE1c39Q", staple},
	// Django's own tests: tests/auth_tests/test_hashers.py
	{"django", "pbkdf2_sha256$870000$seasalt2$nxgnNHRsZWSmi4hRSKq2MRigfaRmjDhH1NH4g2sQRbU=", "lètmein"},
	// hashlib.scrypt (Python) and x/crypto/bcrypt, put together as django/contrib/auth/hashers.py does
	{"django scrypt", "scrypt$16384$lJ9bTzQ2kGm4$8$5$DafwLQUHqjHEsAM0krSZ1JtMRjbp1yFtPERCIMtdCkfkSPlCDhYLZpe4OS0Arkqx7q5HcCrmVgGCBX8gmPaB/g==", "ünï cödé wörds"},
	{"django bcrypt_sha256", "bcrypt_sha256$$2b$05$1UcMfuXa1az71ksgXeUtB.iiNz.O87S/l0oDPwbgc91CE68Mr/pMm", "lètmein"},
	{"django bcrypt", "bcrypt$$2b$05$fvt90jdrYp.FSS4a/f/7mulqB9SBNr3AZe1RZBJNHwqvJ.ZhXDpEy", "lètmein"},
	{"spring bcrypt", "{bcrypt}$2a$05$fvt90jdrYp.FSS4a/f/7mulqB9SBNr3AZe1RZBJNHwqvJ.ZhXDpEy", "lètmein"},
	{"dovecot", "{BLF-CRYPT}$2y$05$fvt90jdrYp.FSS4a/f/7mulqB9SBNr3AZe1RZBJNHwqvJ.ZhXDpEy", "lètmein"},
}

func TestVerifyVectors(t *testing.T) {
	pool := NewPool(Default, Options{})
	for _, test := range vectors {
		t.Run(test.name, func(t *testing.T) {
			if err := CheckHash(test.phc); err != nil {
				t.Fatalf("CheckHash: %v", err)
			}
			wantOutdated := test.name != "argon2id cli" // the only one with the default parameters and sizes
			right, err := pool.Verify(t.Context(), test.phc, test.password)
			if want := (Result{OK: true, Outdated: wantOutdated}); err != nil || right != want {
				t.Errorf("right password: %+v, %v, want %+v", right, err, want)
			}
			wrong, err := pool.Verify(t.Context(), test.phc, test.password[1:])
			if err != nil || wrong.OK {
				t.Errorf("wrong password: %+v, %v, want no match and no error", wrong, err)
			}
		})
	}
}

func TestOutdated(t *testing.T) {
	phc, err := NewPool(cheap, Options{}).Hash(t.Context(), staple)
	if err != nil {
		t.Fatal(err)
	}
	shortTag := "$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"
	for _, test := range []struct {
		name   string
		phc    string
		params Params
		want   bool
	}{
		{"same", phc, cheap, false},
		{"other memory", phc, Params{2048, 1, 1}, true},
		{"other time", phc, Params{1024, 2, 1}, true},
		{"other parallelism", phc, Params{1024, 1, 2}, true},
		{"other tag size", shortTag, cheap, true},
	} {
		got, err := NewPool(test.params, Options{}).Verify(t.Context(), test.phc, staple)
		if err != nil || got.Outdated != test.want {
			t.Errorf("%s: %+v, %v, want Outdated %v", test.name, got, err, test.want)
		}
	}
}

// refused has a hash for each possible error. The word marker stands where free text can
// be: no error may repeat it.
var refused = []struct{ why, phc string }{
	{"empty", ""},
	{"bare password", "hunter2-marker"},
	{"bare password with dollars", "$marker$marker$marker$"},
	{"crypt(3) SHA-512", "$6$marker$marker"},
	{"argon2i", "$argon2i$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"too long", "$argon2id$" + strings.Repeat("marker", 100)},

	{"argon2id: no version", "$argon2id$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: old version", "$argon2id$v=16$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: trailing part", "$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA$"},
	{"argon2id: order", "$argon2id$v=19$t=1,m=1024,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: key id", "$argon2id$v=19$m=1024,t=1,p=1,keyid=AA$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: word for number", "$argon2id$v=19$m=marker,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: leading zero", "$argon2id$v=19$m=01024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: sign", "$argon2id$v=19$m=+1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: memory for 33 bits", "$argon2id$v=19$m=4294967297,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: memory over 1 GiB", "$argon2id$v=19$m=1048577,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: memory under 8 p", "$argon2id$v=19$m=15,t=1,p=2$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: 0 passes", "$argon2id$v=19$m=1024,t=0,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: 65 passes", "$argon2id$v=19$m=1024,t=65,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: 0 lanes", "$argon2id$v=19$m=1024,t=1,p=0$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: 65 lanes", "$argon2id$v=19$m=1024,t=1,p=65$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: 257 lanes, 1 in 8 bits", "$argon2id$v=19$m=1024,t=1,p=257$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: memory × time too large", "$argon2id$v=19$m=1048576,t=64,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: short salt", "$argon2id$v=19$m=1024,t=1,p=1$c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: long salt", "$argon2id$v=19$m=1024,t=1,p=1$" + strings.Repeat("AAAA", 22) + "$c2FsdHNhbHRzYWx0c2FsdA"},
	{"argon2id: short tag", "$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHQ"},
	{"argon2id: long tag", "$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$" + strings.Repeat("AAAA", 22)},
	{"argon2id: empty tag", "$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$"},
	{"argon2id: padding", "$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA==$c2FsdHNhbHRzYWx0c2FsdA=="},
	{"argon2id: line break in tag", "$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRz\nYWx0c2FsdA"},
	{"argon2id: unused bits set", "$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdB"},
	{"argon2id: not base64", "$argon2id$v=19$m=1024,t=1,p=1$marker!marker!$c2FsdHNhbHRzYWx0c2FsdA"},

	{"django scrypt: parts", "scrypt$16384$saltsaltsalt$8$DafwLQUHqjHEsAM0krSZ1JtMRjbp1yFtPERCIMtdCkfkSPlCDhYLZpe4OS0Arkqx7q5HcCrmVgGCBX8gmPaB/g=="},
	{"django scrypt: N", "scrypt$16385$saltsaltsalt$8$5$DafwLQUHqjHEsAM0krSZ1JtMRjbp1yFtPERCIMtdCkfkSPlCDhYLZpe4OS0Arkqx7q5HcCrmVgGCBX8gmPaB/g=="},
	{"django scrypt: N × r × p", "scrypt$1048576$saltsaltsalt$8$5$DafwLQUHqjHEsAM0krSZ1JtMRjbp1yFtPERCIMtdCkfkSPlCDhYLZpe4OS0Arkqx7q5HcCrmVgGCBX8gmPaB/g=="},
	{"django scrypt: a parameter in a parameter", "scrypt$16384$saltsaltsalt$8,p=1$5$DafwLQUHqjHEsAM0krSZ1JtMRjbp1yFtPERCIMtdCkfkSPlCDhYLZpe4OS0Arkqx7q5HcCrmVgGCBX8gmPaB/g=="},
	{"django bcrypt_sha256: 2a", "bcrypt_sha256$$2a$05$1UcMfuXa1az71ksgXeUtB.iiNz.O87S/l0oDPwbgc91CE68Mr/pMm"},
	{"django bcrypt_sha256: cost", "bcrypt_sha256$$2b$31$1UcMfuXa1az71ksgXeUtB.iiNz.O87S/l0oDPwbgc91CE68Mr/pMm"},
	{"a name in braces before no hash", "{marker}marker"},
	{"a name in braces twice", "{bcrypt}{bcrypt}$2a$05$fvt90jdrYp.FSS4a/f/7mulqB9SBNr3AZe1RZBJNHwqvJ.ZhXDpEy"},

	{"bcrypt: 2x", "$2x$06$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES"},
	{"bcrypt: cost 3", "$2b$03$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES"},
	{"bcrypt: cost 16", "$2b$16$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES"},
	{"bcrypt: cost 31", "$2b$31$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES"},
	{"bcrypt: one digit", "$2b$6$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES"},
	{"bcrypt: cut off", "$2b$06$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0E"},
	{"bcrypt: line end", "$2b$06$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES\n"},

	{"scrypt: N 2^23", "$scrypt$ln=23,r=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"scrypt: N 2^64", "$scrypt$ln=64,r=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"scrypt: N 1", "$scrypt$ln=0,r=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"scrypt: product too large", "$scrypt$ln=17,r=8,p=5$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"scrypt: product overflows 32 bits", "$scrypt$ln=1,r=65536,p=65536$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"scrypt: r 0", "$scrypt$ln=14,r=0,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"scrypt: p 0", "$scrypt$ln=14,r=8,p=0$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"scrypt: default parameters", "$scrypt$$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"scrypt: empty key", "$scrypt$ln=14,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$"},

	{"pbkdf2: too many rounds", "$pbkdf2-sha256$4000001$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"pbkdf2: 0 rounds", "$pbkdf2-sha256$0$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"pbkdf2: negative rounds", "$pbkdf2-sha256$-1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"pbkdf2: SHA-1", "$pbkdf2$1000$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA"},
	{"pbkdf2: key of two blocks", "$pbkdf2-sha256$1000$c2FsdHNhbHRzYWx0c2FsdA$" + strings.Repeat("AAAA", 11)},
	{"pbkdf2: plus sign", "$pbkdf2-sha256$1000$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzY+x0c2FsdA"},

	{"django: too many rounds", "pbkdf2_sha256$4000001$seasalt2$nxgnNHRsZWSmi4hRSKq2MRigfaRmjDhH1NH4g2sQRbU="},
	{"django: unusable password", "!marker"},
	{"django: no padding", "pbkdf2_sha256$1000$seasalt2$nxgnNHRsZWSmi4hRSKq2MRigfaRmjDhH1NH4g2sQRbU"},
	{"django: short salt", "pbkdf2_sha256$1000$sea$nxgnNHRsZWSmi4hRSKq2MRigfaRmjDhH1NH4g2sQRbU="},
	{"django: long salt", "pbkdf2_sha256$1000$" + strings.Repeat("marker", 11) + "$nxgnNHRsZWSmi4hRSKq2MRigfaRmjDhH1NH4g2sQRbU="},
}

func TestRefused(t *testing.T) {
	pool := NewPool(cheap, Options{})
	for _, test := range refused {
		err := CheckHash(test.phc)
		if err == nil {
			t.Errorf("%s: accepted", test.why)
			continue
		}
		if strings.Contains(err.Error(), "marker") {
			t.Errorf("%s: the error quotes the input: %v", test.why, err)
		}
		if test.phc == "" {
			continue // Verify treats this as an unknown name
		}
		if got, err := pool.Verify(t.Context(), test.phc, staple); err == nil {
			t.Errorf("%s: Verify answered %+v, want an error", test.why, got)
		}
	}
	if n := pool.Stats().Hashes; n != 0 {
		t.Errorf("%d hashes were made to verify unreadable ones, want none", n)
	}
}

// FuzzParse searches for input that panics, has a cost out of bounds, or is a second spelling
// of a hash.
func FuzzParse(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.phc)
	}
	for _, r := range refused {
		f.Add(r.phc)
	}
	f.Fuzz(func(t *testing.T, phc string) {
		d, err := parse(phc)
		if err != nil {
			return
		}
		if d.foreign != nil {
			if d.cost.Time != 0 || d.cost.MemoryKiB > 1<<20 {
				t.Errorf("foreign hash with cost %+v", d.cost)
			}
			return
		}
		if err := d.cost.checkCost(); err != nil {
			t.Errorf("passed with %v", err)
		}
		if d.String() != phc {
			t.Errorf("%q is a second spelling of %q", phc, d)
		}
	})
}
