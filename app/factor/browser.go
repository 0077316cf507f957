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
	tenants, err := remembering(ctx, read, by.ID)
	if err != nil || len(tenants) == 0 {
		return nil, err
	}
	all, err := read.RememberedBrowsers(ctx, by.ID, f.db.Now().AddDate(0, 0, -doorward.MaxRememberDays))
	var browsers []Browser
	for _, b := range all {
		until := tenants.until(b.ProvedAt)
		if !until.After(f.db.Now()) {
			continue
		}
		current := slices.ContainsFunc(by.Devices, func(hash []byte) bool { return bytes.Equal(hash, b.Hash) })
		browsers = append(browsers, Browser{browserID(b.Hash), current, b.ProvedAt, until, b.IP, b.UserAgent})
	}
	return browsers, err
}

// rememberingTenants are tenants that remember browsers: for how many days, and only those in which a
// factor was proved after an instant.
type rememberingTenants []struct {
	days  int
	since time.Time
}

// until returns how long a browser in which a factor was proved at an instant is remembered; the zero
// Time if no tenant remembers it.
func (all rememberingTenants) until(proved time.Time) (last time.Time) {
	for _, t := range all {
		if end := proved.AddDate(0, 0, t.days); proved.After(t.since) && end.After(last) {
			last = end
		}
	}
	return last
}

// remembering returns the tenants of the person that remember browsers.
func remembering(ctx context.Context, read store.Reader, userID string) (all rememberingTenants, err error) {
	memberships, err := read.Memberships(ctx, userID)
	if err != nil {
		return nil, err
	}
	for _, m := range memberships {
		tenant, err := read.Tenant(ctx, m.TenantID)
		if err != nil {
			return nil, err
		}
		days := tenant.Settings.SecondFactor.RememberDays
		if days == 0 {
			continue
		}
		since, err := read.BrowsersForgotten(ctx, m.TenantID, userID)
		if err != nil {
			return nil, err
		}
		all = append(all, struct {
			days  int
			since time.Time
		}{days, since})
	}
	return all, nil
}

// ForgetBrowser forgets a remembered browser of the caller, or all if the id is empty, so that a login in it
// needs the second factor again. It is recorded as session.end. Known browsers belong to the account, as the
// factors of OfCaller do. Errors: not_found, sign_in_required, step_up_required.
func (f *Factors) ForgetBrowser(ctx context.Context, by doorward.Caller, id string) error {
	_, err := f.writer.Do(ctx, by, doorward.SessionEnd, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		if by.Issuer != doorward.OwnIssuer {
			if _, err := tx.DecideNow(ctx, by, doorward.MFAEnrol, userObject(by.ID, by.TenantID)); err != nil {
				return err
			}
		}
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
