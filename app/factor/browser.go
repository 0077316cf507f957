package factor

import (
	"bytes"
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Browser is a browser that stands in for the second factor.
type Browser struct {
	ID        string
	Current   bool // it sends this request
	ProvedAt  time.Time
	Until     time.Time // in the tenant that remembers browsers longest
	IP        string    // both as of ProvedAt; empty if they weren't stored then
	UserAgent string
}

// browserID identifies a browser in requests: the beginning of the hash of a random token,
// which doesn't reveal the token.
func browserID(hash []byte) string { return hex.EncodeToString(hash[:min(8, len(hash))]) }

// browsers returns those of the caller that stand in for a factor in some tenant.
func (f *Factors) browsers(ctx context.Context, read store.Reader, by doorward.Caller) ([]Browser, error) {
	longest, err := rememberDays(ctx, read, by.ID)
	if err != nil || longest == 0 {
		return nil, err
	}
	all, err := read.RememberedBrowsers(ctx, by.ID, f.db.Now().AddDate(0, 0, -longest))
	var browsers []Browser
	for _, s := range all {
		current := slices.ContainsFunc(by.Devices, func(hash []byte) bool { return bytes.Equal(hash, s.Hash) })
		browsers = append(browsers, Browser{browserID(s.Hash), current, s.ProvedAt, s.ProvedAt.AddDate(0, 0, longest), s.IP, s.UserAgent})
	}
	return browsers, err
}

// rememberDays is for how many days a browser of the person can stand in for a factor in
// any tenant.
func rememberDays(ctx context.Context, read store.Reader, userID string) (longest int, err error) {
	memberships, err := read.Memberships(ctx, userID)
	if err != nil {
		return 0, err
	}
	for _, m := range memberships {
		tenant, err := read.Tenant(ctx, m.TenantID)
		if err != nil {
			return 0, err
		}
		longest = max(longest, tenant.Settings.SecondFactor.RememberDays)
	}
	return longest, nil
}

// Forget makes a browser of the caller's, or all if the id is empty, ask for the second
// factor again. The trail records it like the end of sessions. Errors: not_found.
func (f *Factors) Forget(ctx context.Context, by doorward.Caller, id string) error {
	_, err := f.writer.Do(ctx, by, doorward.SessionEnd, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		all, err := tx.RememberedBrowsers(ctx, by.ID, time.Time{})
		if err != nil {
			return err
		}
		chosen := slices.DeleteFunc(slices.Clone(all), func(s store.RememberedBrowser) bool { return id != "" && browserID(s.Hash) != id })
		if len(chosen) == 0 {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		for _, s := range chosen {
			if err := notFoundUnless(tx.ForgetBrowser(ctx, by.ID, s.Hash)); err != nil {
				return err
			}
		}
		tx.Changed("rememberedBrowsers", strconv.Itoa(len(all)), strconv.Itoa(len(all)-len(chosen)))
		return nil
	})
	return err
}
