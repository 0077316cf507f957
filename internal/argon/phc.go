package argon

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Sizes of what Hash makes, as RFC 9106, section 4, recommends.
const (
	saltSize = 16
	tagSize  = 32
)

// Sizes accepted in stored hashes. The tag's minimum, 128 bits, is half of the
// common size and far above what can be guessed.
const (
	minSalt, maxSalt = 8, 64
	minTag, maxTag   = 16, 64
	maxPHC           = 512 // characters of the entire string
)

// digest is a stored hash that was parsed, with a cost within the bounds.
type digest struct {
	// cost is the cost of one verification. Time is 0 for a foreign hash, which therefore
	// differs from the parameters of every pool.
	cost Params

	salt, tag []byte  // of Argon2id
	foreign   matcher // of all others, nil for Argon2id
}

// matcher is a foreign hash as go-crypt parses it. It compares in constant time.
type matcher interface {
	MatchAdvanced(password string) (bool, error)
}

// CheckHash returns nil if [Pool.Verify] can work with the stored hash, and
// otherwise an error that says why not. The empty string is no hash. Errors
// never quote the input, which after a faulty import may be a plain password.
//
// These can be read, in the PHC string format
// (https://github.com/P-H-C/phc-string-format) unless said otherwise:
//
//   - $argon2id$ of version 19: up to 1 GiB, 64 passes, 64 lanes, and 4 GiB
//     of memory × passes
//   - $2a$, $2b$, $2y$ (bcrypt as crypt(3) writes it): cost 4 to 15. $2x$
//     marks hashes of a broken implementation and is refused
//   - $scrypt$: N × r × p up to 2^22, that is 512 MiB
//   - $pbkdf2-sha256$ and $pbkdf2-sha512$ (passlib's alphabet), and Django's
//     pbkdf2_sha256$: up to 4,000,000 rounds
//   - Django's scrypt$ and bcrypt_sha256$, with the limits of scrypt and bcrypt
//   - each of the first four after Django's "argon2" or "bcrypt$", or after a name
//     in braces, such as {bcrypt}
//
// Each limit is a few seconds of one core.
func CheckHash(phc string) error {
	_, err := parse(phc)
	return err
}

// kinds are the stored hashes that parse reads, by their first characters.
var kinds = []struct {
	prefix string
	parse  func(phc, rest string) (digest, error) // rest is phc without the prefix
}{
	{"$argon2id$", parseArgon2id},
	{"$2a$", parseBcrypt},
	{"$2b$", parseBcrypt},
	{"$2y$", parseBcrypt},
	{"$scrypt$", parseScrypt},
	{"$pbkdf2-sha256$", parsePBKDF2},
	{"$pbkdf2-sha512$", parsePBKDF2},
	{"pbkdf2_sha256$", parseDjangoPBKDF2},
	{"scrypt$", parseDjangoScrypt},
	{"bcrypt_sha256$", parseDjangoBcryptSHA256},
}

// wrapped matches what frameworks write before a hash in crypt(3) or PHC form: Django's "argon2" and
// "bcrypt$", and the names in braces of Spring Security, Dovecot and LDAP.
var wrapped = regexp.MustCompile(`^(?:argon2|bcrypt\$|\{[A-Za-z0-9@._-]{1,40}\})(\$)`)

// parse reads a stored hash. It accepts exactly one spelling of each value: no signs, leading
// zeros, padding, line breaks or unused bits set. Exceptions: the cost of bcrypt has two
// digits, the unused bits of its salt are ignored, and Django's keys must have their padding.
func parse(phc string) (digest, error) {
	if len(phc) > maxPHC {
		return digest{}, fmt.Errorf("argon: stored hash: longer than %d characters", maxPHC)
	}
	phc = wrapped.ReplaceAllString(phc, "$1")
	for _, kind := range kinds {
		rest, ok := strings.CutPrefix(phc, kind.prefix)
		if !ok {
			continue
		}
		d, err := kind.parse(phc, rest)
		if err != nil {
			return digest{}, fmt.Errorf("argon: stored hash: %s: %w", strings.Trim(kind.prefix, "$"), err)
		}
		return d, nil
	}
	return digest{}, errors.New("argon: stored hash: not one of argon2id, bcrypt ($2a$, $2b$, $2y$), " +
		"scrypt, pbkdf2-sha256, pbkdf2-sha512, Django's pbkdf2_sha256, scrypt and bcrypt_sha256")
}

// parseArgon2id reads v=19$m=…,t=…,p=…$salt$tag.
func parseArgon2id(_, rest string) (digest, error) {
	parts := strings.Split(rest, "$")
	if len(parts) != 4 {
		return digest{}, errors.New("want version, parameters, salt and tag")
	}
	if parts[0] != "v=19" {
		return digest{}, errors.New("only version 19 is known")
	}
	cost, err := parseCost(parts[1])
	if err != nil {
		return digest{}, err
	}
	salt, err := unpack(base64.RawStdEncoding, parts[2], "salt", minSalt, maxSalt)
	if err != nil {
		return digest{}, err
	}
	tag, err := unpack(base64.RawStdEncoding, parts[3], "tag", minTag, maxTag)
	return digest{cost: cost, salt: salt, tag: tag}, err
}

func parseCost(s string) (Params, error) {
	v, err := parseNumbers(s, "m=", "t=", "p=")
	if err != nil {
		return Params{}, err
	}
	if v[2] > maxParallelism {
		return Params{}, fmt.Errorf("parallelism p=%d is above %d", v[2], maxParallelism)
	}
	p := Params{MemoryKiB: v[0], Time: v[1], Parallelism: uint8(v[2])}
	return p, p.checkCost()
}

// String is the PHC string of an Argon2id hash.
func (d digest) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		d.cost.MemoryKiB, d.cost.Time, d.cost.Parallelism, b64.EncodeToString(d.salt), b64.EncodeToString(d.tag))
}

// request returns the request for the tag that the password would have.
func (d digest) request(password string, size uint32) request {
	return request{Password: []byte(password), Salt: d.salt, Cost: d.cost, Size: size}
}

// isOutdated reports whether Hash would now use other parameters, sizes or another algorithm.
func (d digest) isOutdated(current Params) bool {
	return d.cost != current || len(d.salt) != saltSize || len(d.tag) != tagSize
}

// parseNumbers reads values separated by commas, each after its name, in the
// order of the names.
func parseNumbers(s string, names ...string) ([]uint32, error) {
	parts := strings.Split(s, ",")
	if len(parts) != len(names) {
		return nil, fmt.Errorf("want the parameters %s and no other", strings.Join(names, " "))
	}
	values := make([]uint32, len(names))
	for i, name := range names {
		digits, ok := strings.CutPrefix(parts[i], name)
		if !ok {
			return nil, fmt.Errorf("want the parameters %s in this order", strings.Join(names, " "))
		}
		var err error
		if values[i], err = parseNumber(digits); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", strings.TrimSuffix(name, "="), err)
		}
	}
	return values, nil
}

// parseNumber reads a decimal number in its canonical form.
func parseNumber(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, errors.New("not a decimal number in 32 bits")
	}
	return uint32(n), nil
}

// unpack decodes between least and most bytes. Encoding them again must give the
// same text, because Go's decoder ignores line breaks and unused bits.
func unpack(enc *base64.Encoding, s, name string, least, most int) ([]byte, error) {
	b, err := enc.DecodeString(s)
	if err != nil || enc.EncodeToString(b) != s {
		return nil, fmt.Errorf("the %s is not in its base64 alphabet", name)
	}
	if len(b) < least || len(b) > most {
		return nil, fmt.Errorf("the %s has %d bytes, not %d to %d", name, len(b), least, most)
	}
	return b, nil
}
