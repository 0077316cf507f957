// Package directory is the SCIM side of connections: what a customer's directory reads and writes of the people of its
// tenant. Package internal/scim reads the forms, and web/scim speaks the protocol.
//
// A User is a membership, or an invitation on its way to one. Each write is one transaction, under the lock on the
// tenant, in which the secret and the connection are read again (access), and records what it has changed
// (doorward.DirectoryEffect) in its run: see work.on. A person who is switched off, or removed, has no session, key or token that
// any node accepts when the write is answered.
//
//	secret.go   secrets: making, ending, checking
//	read.go     people as the directory sees them
//	write.go    the one way to write
//	alarm.go    mails to OWNERs when it ends the access of many
//	record.go   what a write has changed, in its run
//	make.go     POST
//	change.go   PUT, PATCH, DELETE
//	protocol.go what the protocol has of refused requests
//	refused.go  mails about addresses that were refused
//	said.go     what directories hold of a member, for the pages about people
//
// Errors are those of doorward, and *scim.Error for what RFC 7644 names.
package directory

import (
	"net/http"
	"sync/atomic"

	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/registry"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// Directories is the feature. Make it with New.
type Directories struct {
	writer    *access.Writer
	db        *store.DB
	lease     *lease.Lease
	providers *provider.Client // keeps the protocol
	life      store.SessionLifetime
	owners    member.Owners
	base      string             // address of this installation, without a slash at the end
	registry  *registry.Registry // by the hash of a secret
	queries   registry.QueryLimiter
	alarms    atomic.Int64 // mails to OWNERs about runs that end the access of many
}

// maxInMemory is how many secrets are kept in memory; others are read from the database.
const maxInMemory = 10_000

// New returns the feature. The memory of secrets follows the changes that the lease delivers.
func New(writer *access.Writer, db *store.DB, l *lease.Lease, providers *provider.Client, life store.SessionLifetime, owners member.Owners, base string) *Directories {
	d := &Directories{writer: writer, db: db, lease: l, providers: providers, life: life, owners: owners, base: base, registry: registry.New(maxInMemory)}
	l.Follow(d.apply, d.registry.Reset)
	return d
}

// Alarms returns how often this node has told OWNERs that a directory ends the access of many.
func (d *Directories) Alarms() int64 { return d.alarms.Load() }

// URL is where directories write.
func (d *Directories) URL() string { return d.base + "/scim/v2" }

// refuse returns a 400 of SCIM. advice is what the protocol says to do; empty: what it says of the scimType.
func refuse(scimType, advice, detail string) error {
	return &scim.Error{Status: http.StatusBadRequest, Type: scimType, Detail: detail, Advice: advice}
}

// conflict returns the 409 for a value that somebody else has.
func conflict(detail string) error {
	return &scim.Error{Status: http.StatusConflict, Type: scim.Uniqueness, Detail: detail}
}
