package argon

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strings"

	"github.com/go-crypt/crypt/algorithm/bcrypt"
	"github.com/go-crypt/crypt/algorithm/pbkdf2"
	"github.com/go-crypt/crypt/algorithm/scrypt"
)

// go-crypt decodes without limits and leniently: it accepts a cost of 31 or a
// gigabyte of memory, and changes a bcrypt cost below 4 to 10. So hashes are
// checked here first.

// Bounds of foreign costs: two to three seconds of one core each.
const (
	minBcryptCost, maxBcryptCost = 4, 15
	maxScryptWork                = 1 << 22 // N × r × p
	maxPBKDF2Rounds              = 4_000_000
)

// foreignCost returns the cost of a hash that isn't Argon2id's and takes this much memory. Its
// Time is 0, unlike that of any Argon2id hash.
func foreignCost(kib uint32) Params { return Params{MemoryKiB: kib, Parallelism: 1} }

// bcryptForm matches the cost, 22 characters of salt and 31 of hash in bcrypt's own
// alphabet.
var bcryptForm = regexp.MustCompile(`^([0-9]{2})\$[./A-Za-z0-9]{53}$`)

// parseBcrypt reads cost$salt-and-hash. As in every implementation in C, bytes of
// the password beyond the 72nd are ignored.
func parseBcrypt(phc, rest string) (digest, error) {
	form := bcryptForm.FindStringSubmatch(rest)
	if form == nil {
		return digest{}, errors.New("want two digits of cost and 53 characters of salt and hash")
	}
	cost, err := parseNumber(strings.TrimPrefix(form[1], "0")) // which refuses leading zeros
	if err != nil || cost < minBcryptCost || cost > maxBcryptCost {
		return digest{}, fmt.Errorf("a cost of %s is not within %d to %d", form[1], minBcryptCost, maxBcryptCost)
	}
	m, err := bcrypt.Decode(phc)
	const kib = 4 // the tables of Blowfish
	return digest{cost: foreignCost(kib), foreign: m}, err
}

// parseScrypt reads ln=…,r=…,p=…$salt$key, where N is 2^ln.
func parseScrypt(phc, rest string) (digest, error) {
	parts := strings.Split(rest, "$")
	if len(parts) != 3 {
		return digest{}, errors.New("want parameters, salt and key")
	}
	kib, err := scryptMemory(parts[0])
	if err != nil {
		return digest{}, err
	}
	if err := checkSaltAndKey(base64.RawStdEncoding, parts[1], parts[2], maxTag); err != nil {
		return digest{}, err
	}
	m, err := scrypt.Decode(phc)
	return digest{cost: foreignCost(kib), foreign: m}, err
}

// scryptMemory returns the KiB of V and B in RFC 7914, section 6, which is
// 128 × r × (N + p) bytes. It refuses parameters out of bounds.
func scryptMemory(s string) (uint32, error) {
	v, err := parseNumbers(s, "ln=", "r=", "p=")
	if err != nil {
		return 0, err
	}
	ln, r, p := v[0], v[1], v[2]
	if ln < 1 || ln > 22 || r < 1 || r > maxScryptWork || p < 1 || p > maxScryptWork ||
		uint64(r)*uint64(p) > maxScryptWork>>ln {
		return 0, fmt.Errorf("ln=%d, r=%d, p=%d: N × r × p is not within 1 to %d", ln, r, p, maxScryptWork)
	}
	return r * (1<<ln + p) / 8, nil
}

// passlibAlphabet is base64 with "." where the standard has "+".
var passlibAlphabet = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789./").
	WithPadding(base64.NoPadding)

// parsePBKDF2 reads rounds$salt$key. The key may not be longer than one hash:
// each further block of it costs all rounds again.
func parsePBKDF2(phc, rest string) (digest, error) {
	parts := strings.Split(rest, "$")
	if len(parts) != 3 {
		return digest{}, errors.New("want rounds, salt and key")
	}
	if err := checkRounds(parts[0]); err != nil {
		return digest{}, err
	}
	size := 32
	if strings.HasPrefix(phc, "$pbkdf2-sha512$") {
		size = 64
	}
	if err := checkSaltAndKey(passlibAlphabet, parts[1], parts[2], size); err != nil {
		return digest{}, err
	}
	m, err := pbkdf2.Decode(phc)
	const kib = 0 // PBKDF2 takes next to none
	return digest{cost: foreignCost(kib), foreign: m}, err
}

// parseDjangoPBKDF2 reads rounds$salt$key as Django writes it: the salt as it is, the key in
// padded standard base64. It rewrites both as go-crypt reads them.
func parseDjangoPBKDF2(_, rest string) (digest, error) {
	parts := strings.Split(rest, "$")
	if len(parts) != 3 {
		return digest{}, errors.New("want rounds, salt and key")
	}
	key, err := unpack(base64.StdEncoding, parts[2], "key", minTag, maxTag)
	if err != nil {
		return digest{}, err
	}
	rest = parts[0] + "$" + passlibAlphabet.EncodeToString([]byte(parts[1])) + "$" + passlibAlphabet.EncodeToString(key)
	return parsePBKDF2("$pbkdf2-sha256$"+rest, rest)
}

// parseDjangoScrypt reads N$salt$r$p$key as Django writes it: the salt as it is, the key in padded
// standard base64. It rewrites them as go-crypt reads them.
func parseDjangoScrypt(_, rest string) (digest, error) {
	parts := strings.Split(rest, "$")
	if len(parts) != 5 {
		return digest{}, errors.New("want N, salt, r, p and key")
	}
	n, err := parseNumber(parts[0])
	if err != nil || bits.OnesCount32(n) != 1 {
		return digest{}, errors.New("want a power of two for N")
	}
	key, err := unpack(base64.StdEncoding, parts[4], "key", minTag, maxTag)
	if err != nil {
		return digest{}, err
	}
	b64 := base64.RawStdEncoding
	rest = fmt.Sprintf("ln=%d,r=%s,p=%s$%s$%s", bits.TrailingZeros32(n), parts[2], parts[3], b64.EncodeToString([]byte(parts[1])), b64.EncodeToString(key))
	return parseScrypt("$scrypt$"+rest, rest)
}

// parseDjangoBcryptSHA256 reads $2b$cost$salt-and-hash: bcrypt of the hexadecimal SHA-256 of the
// password, so that passwords of more than 72 bytes count whole.
func parseDjangoBcryptSHA256(_, rest string) (digest, error) {
	cost, ok := strings.CutPrefix(rest, "$2b$")
	if !ok {
		return digest{}, errors.New("want $2b$")
	}
	d, err := parseBcrypt(rest, cost)
	d.foreign = ofSHA256{d.foreign}
	return d, err
}

// ofSHA256 is a hash of the hexadecimal SHA-256 of the password.
type ofSHA256 struct{ matcher }

func (m ofSHA256) MatchAdvanced(password string) (bool, error) {
	sum := sha256.Sum256([]byte(password))
	return m.matcher.MatchAdvanced(hex.EncodeToString(sum[:]))
}

func checkRounds(s string) error {
	rounds, err := parseNumber(s)
	if err != nil {
		return fmt.Errorf("rounds: %w", err)
	}
	if rounds < 1 || rounds > maxPBKDF2Rounds {
		return fmt.Errorf("%d rounds are not within 1 to %d", rounds, maxPBKDF2Rounds)
	}
	return nil
}

func checkSaltAndKey(enc *base64.Encoding, salt, key string, maxKey int) error {
	if _, err := unpack(enc, salt, "salt", minSalt, maxSalt); err != nil {
		return err
	}
	_, err := unpack(enc, key, "key", minTag, maxKey)
	return err
}
