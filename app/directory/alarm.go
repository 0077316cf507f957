package directory

import (
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/store"
)

// A directory that ends the access of many within alarmWithin is reported to OWNERs, once for a run: alarmMany people, or
// alarmShare per cent of the active members of before, and at least alarmFew. Nothing is held up: a brake would keep
// dismissed people in.
const (
	alarmWithin = time.Hour
	alarmMany   = 50
	alarmFew    = 10
	alarmShare  = 20
)

// alarm tells OWNERs, unless they were told of the run. It runs under the lock on the tenant, in the transaction of the
// write, so on one node only.
func (r *recorder) alarm() error {
	if !r.ended || r.run.IsAlarmed {
		return nil
	}
	isMany, err := r.endsMany(r.tx.Now.Add(-alarmWithin))
	if err != nil || !isMany {
		return err
	}
	r.run.IsAlarmed, r.alarmed = true, true
	to, err := access.EmailsOf(r.ctx, r.tx.Reader, r.con.TenantID, doorward.RoleOwner)
	if err != nil {
		return err
	}
	return r.tx.NotifyAlso(r.ctx, store.MailDirectoryAlarm, to, doorward.DirectoryAlarm, provider.Object(r.con),
		doorward.Change{Field: doorward.FieldRun, To: r.run.ID},
		doorward.Change{Field: doorward.FieldSuspended, To: strconv.Itoa(r.run.Suspended)},
		doorward.Change{Field: doorward.FieldRemoved, To: strconv.Itoa(r.run.Removed)})
}

// endsMany reports whether the directory has ended the access of many since, beside those of whom OWNERs were told.
func (r *recorder) endsMany(since time.Time) (bool, error) {
	untold, err := r.tx.CountUntoldOfDirectory(r.ctx, r.con.ID, since)
	if err != nil || untold < alarmFew || untold >= alarmMany {
		return untold >= alarmMany, err
	}
	active, err := r.tx.CountActiveMembers(r.ctx, r.con.TenantID)
	if err != nil {
		return false, err
	}
	ended, err := r.tx.CountEndedByDirectory(r.ctx, r.con.ID, since)
	if err != nil {
		return false, err
	}
	begun, err := r.tx.CountBegunByDirectory(r.ctx, r.con.ID, since)
	return untold*100 >= alarmShare*(active+ended-begun), err
}
