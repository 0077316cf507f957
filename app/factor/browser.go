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

// Browser is a remembered browser: it takes the place of the second factor.
type Browser struct {
	ID        string
	Current   bool // whether it sends this request
	ProvedAt  time.Time
	Until     time.Time // in the tenant that remembers browsers longest
	IP        string    // at ProvedAt; empty if it wasn't stored
	UserAgent string    // at ProvedAt; empty if it wasn't stored
}

// browserID returns the id of a browser in requests: the beginning of the hash of its random token,
// which doesn't reveal the token.
func browserID(hash []byte) string { return hex.EncodeToString(hash[:min(8, len(hash))]) }

// browsers returns the caller's browsers that some tenant remembers.
func (f *Factors) browsers(ctx context.Context, read store.Reader, by doorward.Caller) ([]Browser, error) {
	longest, err := rememberDays(ctx, read, by.ID)
	if err != nil || longest == 0 {
		return nil, err
	}
	all, err := read.RememberedBrowsers(ctx, by.ID, f.db.Now().AddDate(0, 0, -longest))
	var browsers []Browser
	for _, b := range all {
		current := slices.ContainsFunc(by.Devices, func(hash []byte) bool { return bytes.Equal(hash, b.Hash) })
		browsers = append(browsers, Browser{browserID(b.Hash), current, b.ProvedAt, b.ProvedAt.AddDate(0, 0, longest), b.IP, b.UserAgent})
	}
	return browsers, err
}

// rememberDays returns for how many days the person's browsers are remembered, at most, in any tenant.
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

// ForgetBrowser forgets a remembered browser of the caller, or all if the id is empty, so that a login in it
// needs the second factor again. It is recorded as session.end. Errors: not_found.
func (f *Factors) ForgetBrowser(ctx context.Context, by doorward.Caller, id string) error {
	_, err := f.writer.Do(ctx, by, doorward.SessionEnd, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		all, err := tx.RememberedBrowsers(ctx, by.ID, time.Time{})
		if err != nil {
			return err
		}
		chosen := slices.DeleteFunc(slices.Clone(all), func(b store.RememberedBrowser) bool { return id != "" && browserID(b.Hash) != id })
		if len(chosen) == 0 {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		for _, b := range chosen {
			if err := notFoundUnless(tx.ForgetBrowser(ctx, by.ID, b.Hash)); err != nil {
				return err
			}
		}
		tx.Changed("rememberedBrowsers", strconv.Itoa(len(all)), strconv.Itoa(len(all)-len(chosen)))
		return nil
	})
	return err
}
