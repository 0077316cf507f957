package apikey

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/registry"
	"github.com/doorward/doorward/internal/gcra"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// keyLimits has what a check needs besides the principal: the limits of the key and its state. It
// is the Extra of the secret's entry in the registry.
type keyLimits struct {
	allowed   []netip.Prefix // client addresses; none: all
	perSecond int            // requests; 0: no limit
	state     *keyState
}

func (l *keyLimits) admits(ip netip.Addr) bool {
	return len(l.allowed) == 0 || slices.ContainsFunc(l.allowed, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// keyState is the state on a node that the secrets of a key share.
type keyState struct {
	id          string
	uses        atomic.Int64               // that are not written yet; if any, the state is in keyStates.used
	lastAddress atomic.Pointer[netip.Addr] // of the last use whose address was known
	limiter     *gcra.Limiter              // of requests
}

// setAddress stores the client's address if it is known. It allocates only if the address has
// changed.
func (s *keyState) setAddress(ip netip.Addr) {
	if !ip.IsValid() {
		return
	}
	if old := s.lastAddress.Load(); old == nil || *old != ip {
		changed := ip // &ip would allocate on every call
		s.lastAddress.Store(&changed)
	}
}

// Remembered is Check from memory alone. It doesn't allocate. False means that Check must be
// called: the key isn't in memory, or is refused.
func (k *Keys) Remembered(key secret.Key, ip netip.Addr) (doorward.Principal, bool) {
	p, found, err := k.remembered(key.Hash(), ip)
	return p, found && err == nil
}

// remembered returns the principal from memory, and whether it was found there. It tests the lease
// before it reads the entry, as sessions do. The error is that of takeRequest.
func (k *Keys) remembered(hash secret.Hash, ip netip.Addr) (p doorward.Principal, found bool, err error) {
	if !k.lease.Valid() || k.db.Clock().Wrong() {
		return p, false, nil
	}
	e := k.registry.Get(hash)
	now := k.db.Now().UnixMicro()
	if e == nil {
		return p, false, nil
	}
	p, extra, inTime := e.Check(now)
	if !inTime {
		return p, false, nil
	}
	limits := extra.(*keyLimits)
	if !limits.admits(ip) {
		return p, false, nil
	}
	if err := k.takeRequest(limits); err != nil {
		return p, true, err
	}
	k.states.use(limits.state)
	limits.state.setAddress(ip)
	k.registry.Use(hash, e, now)
	return p, true, nil
}

// Check verifies the secret of an API key, and returns the caller with the key's principal. It
// records the use. If it refuses a well-formed secret with the error unauthenticated or
// ip_not_allowed, it records the refusal.
// For a key in memory it does no I/O while the lease is valid. Errors: unauthenticated, the same
// for unknown, ended and disabled keys; ip_not_allowed; rate_limited; unavailable;
// too_many_attempts after many unknown keys from the client's network.
func (k *Keys) Check(ctx context.Context, by doorward.Caller, text string) (doorward.Caller, error) {
	key, err := secret.ParseKey(text)
	if err != nil || key.Prefix() != Prefix {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	hash, ip := key.Hash(), addressOf(by.IP)
	p, found, err := k.remembered(hash, ip)
	if !found {
		p, err = k.load(ctx, by, hash, ip)
	}
	if err != nil {
		return by, err
	}
	by.Principal, by.KeyHash = p, hash[:]
	return by, nil
}

// Introspect returns the key of a secret that was used from an address, and its principal. It
// reads the database and records the use. It doesn't record refusals: only the platform's own
// services call it, so a refusal is no sign of guessing. Errors: unauthenticated for a key that
// isn't valid from that address, or is bound to addresses while ip is empty; unavailable.
func (k *Keys) Introspect(ctx context.Context, text, ip string) (doorward.APIKey, doorward.Principal, error) {
	key, err := secret.ParseKey(text)
	if err != nil || key.Prefix() != Prefix {
		return doorward.APIKey{}, doorward.Principal{}, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	hash := key.Hash()
	cred, err := k.read(ctx, hash)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err != nil {
		return doorward.APIKey{}, doorward.Principal{}, err
	}
	limits, from := k.limitsOf(cred), addressOf(ip)
	if decide.KeyRefusal(&cred.Key, cred.SecretEndsAt, k.db.Now()) != "" || !limits.admits(from) {
		return doorward.APIKey{}, doorward.Principal{}, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	k.recordUse(hash, limits, from)
	return cred.Key, doorward.PrincipalOfKey(cred.Key, cred.Tenant), nil
}

// ByID returns the principal of the key with the id, for a use from an address. It doesn't record
// a use. Errors: unauthenticated for a key that is unknown or not valid; ip_not_allowed, with the
// principal, for a key that is bound to other addresses, or to any address while ip is empty;
// unavailable.
func (k *Keys) ByID(ctx context.Context, id, ip string) (doorward.Principal, error) {
	var p doorward.Principal
	if err := k.db.Clock().Err(); err != nil {
		return p, err // expiry can't be determined
	}
	now := k.db.Now()
	key, err := k.db.Read().APIKey(ctx, id, now)
	if err == nil && decide.KeyRefusal(&key, nil, now) != "" {
		err = store.ErrNone
	}
	var tenant doorward.Tenant
	if err == nil {
		tenant, err = k.db.Read().Tenant(ctx, key.TenantID)
	}
	if errors.Is(err, store.ErrNone) {
		return p, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err != nil {
		return p, err
	}
	p = doorward.PrincipalOfKey(key, tenant.Status)
	if !key.Admits(ip) {
		return p, doorward.Fail(doorward.CodeIPNotAllowed, "")
	}
	return p, nil
}

// recordUse records a use of a key that was read from the database.
func (k *Keys) recordUse(hash secret.Hash, limits *keyLimits, ip netip.Addr) {
	k.states.use(limits.state)
	limits.state.setAddress(ip)
	now := k.db.Now().UnixMicro()
	if e := k.registry.Get(hash); e != nil {
		k.registry.Use(hash, e, now)
	} else { // not in memory, but the use must be written
		k.registry.UseUnknown(hash, now)
	}
}

func (k *Keys) limitsOf(c store.KeyCredential) *keyLimits {
	return &keyLimits{allowed: c.Key.AllowedIPs, perSecond: c.Key.PerSecond, state: k.states.stateOf(c.Key.ID)}
}

// addressOf parses an address. For an invalid text it returns the zero Addr, which is in no
// network.
func addressOf(ip string) netip.Addr {
	addr, _ := netip.ParseAddr(ip)
	return addr.Unmap().WithZone("")
}

// load is Check from the database. It records the use or the refusal.
func (k *Keys) load(ctx context.Context, by doorward.Caller, hash secret.Hash, ip netip.Addr) (doorward.Principal, error) {
	cred, err := k.read(ctx, hash)
	if errors.Is(err, store.ErrNone) {
		return doorward.Principal{}, k.refuseUnknown(ctx, by)
	}
	if err != nil {
		return doorward.Principal{}, err
	}
	on := object(cred.Key)
	if cause := decide.KeyRefusal(&cred.Key, cred.SecretEndsAt, k.db.Now()); cause != "" {
		return doorward.Principal{}, k.writer.RefuseKey(ctx, by, on, string(cause), doorward.Fail(doorward.CodeUnauthenticated, ""))
	}
	p, limits := doorward.PrincipalOfKey(cred.Key, cred.Tenant), k.limitsOf(cred)
	if !limits.admits(ip) {
		by.Principal = p
		return p, k.writer.RefuseKey(ctx, by, on, "address", doorward.Fail(doorward.CodeIPNotAllowed, ""))
	}
	if err := k.takeRequest(limits); err != nil {
		return p, err
	}
	k.recordUse(hash, limits, ip)
	return p, nil
}

// read reads the key and puts it into memory. It takes the registry's mark before it reads the row,
// so that a change during the read invalidates the entry (docs/lease.md, rule 5).
func (k *Keys) read(ctx context.Context, hash secret.Hash) (store.KeyCredential, error) {
	var cred store.KeyCredential
	if err := k.db.Clock().Err(); err != nil {
		return cred, err // expiry can't be determined
	}
	mark := k.registry.Mark()
	err := k.queries.Do(func() (err error) {
		cred, err = k.db.Read().APIKeyBySecret(ctx, hash[:], k.db.Now())
		return err
	})
	if err == nil && decide.KeyRefusal(&cred.Key, cred.SecretEndsAt, k.db.Now()) == "" {
		k.registry.Put(hash, k.entryOf(cred, mark))
	}
	return cred, err
}

// entryOf returns the registry entry of a secret, which is valid until the secret or the key ends.
// The first use of a key is written at once, not after a minute.
func (k *Keys) entryOf(c store.KeyCredential, mark uint64) *registry.Entry {
	until, seen := c.Key.EndsAt(), time.UnixMicro(0)
	if c.SecretEndsAt != nil && c.SecretEndsAt.Before(until) {
		until = *c.SecretEndsAt
	}
	if c.Key.LastUsedAt != nil {
		seen = *c.Key.LastUsedAt
	}
	return registry.NewKeyEntry(doorward.PrincipalOfKey(c.Key, c.Tenant), until, seen, k.limitsOf(c), mark)
}

// refuseUnknown refuses an unknown secret. It records the refusal unless the client's network is
// over its limit of unknown secrets.
func (k *Keys) refuseUnknown(ctx context.Context, by doorward.Caller) error {
	if err := k.writer.CountUnknownKey(ctx, by); err != nil {
		return err
	}
	return k.writer.RefuseKey(ctx, by, doorward.Object{Type: "key"}, string(decide.KeyUnknown), doorward.Fail(doorward.CodeUnauthenticated, ""))
}

// InMemory returns how many secrets are in memory.
func (k *Keys) InMemory() int { return k.registry.Len() }

// Run writes last uses until ctx ends, then all that remain.
func (k *Keys) Run(ctx context.Context) {
	k.registry.Run(ctx, func() int64 { return k.db.Now().UnixMicro() }, k.write)
	_ = k.WriteUses(context.WithoutCancel(ctx)) // if it fails, a chart lacks them
}

// Flush writes last uses. What can't be written now is kept for the next flush.
func (k *Keys) Flush(ctx context.Context) error {
	if err := k.registry.Flush(func(uses []store.Use) error { return k.write(ctx, uses) }); err != nil {
		return err
	}
	return k.WriteUses(ctx)
}

// WriteUses writes the uses that are counted and were not written with last uses, as those of an instant that another
// node has written.
func (k *Keys) WriteUses(ctx context.Context) error {
	for k.states.hasUses() {
		if err := k.write(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// writeTimeout bounds one write: otherwise a hanging connection would delay the writes for up to
// 15 minutes, the timeout of TCP.
const writeTimeout = 5 * time.Second

func (k *Keys) write(ctx context.Context, uses []store.Use) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	all, counts := make([]store.KeyUse, len(uses)), k.states.takeUses()
	if len(uses)+len(counts) == 0 {
		return nil
	}
	for i, u := range uses {
		all[i] = store.KeyUse{Use: u, IP: k.lastAddress(u.Hash)}
	}
	err := k.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if err := tx.TouchAPIKeys(ctx, all); err != nil {
			return err
		}
		return counts.write(ctx, tx)
	})
	if err != nil {
		k.states.giveBack(counts)
	}
	return err
}

// lastAddress returns the address of the last use whose address was known; empty if the key
// is no longer in memory.
func (k *Keys) lastAddress(hash secret.Hash) string {
	e := k.registry.Known(hash)
	if e == nil {
		return ""
	}
	if from := e.Extra().(*keyLimits).state.lastAddress.Load(); from != nil {
		return from.String()
	}
	return ""
}

// apply removes entries from memory that changes on any node have made outdated. The lease calls it.
func (k *Keys) apply(_ context.Context, changes []store.Change) error {
	for _, c := range changes {
		k.registry.Forget(c)
	}
	return nil
}
