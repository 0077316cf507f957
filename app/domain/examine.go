package domain

import (
	"context"
	"sync"

	"github.com/doorward/doorward"
)

// Examined is a domain, and whether its record is there now.
type Examined struct {
	doorward.Domain
	Found bool  // the record is there
	Err   error // the name servers don't say
}

// Examine looks at the records of the tenant's domains, the oldest domain first, looksAtOnce at a time. It writes
// nothing. Errors: unavailable, those of ctx.
func (d *Domains) Examine(ctx context.Context, tenantID string) ([]Examined, error) {
	all, err := d.db.Read().Domains(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	examined := make([]Examined, len(all))
	var looks sync.WaitGroup
	slots := make(chan struct{}, looksAtOnce)
	for i, one := range all {
		looks.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			texts, err := d.look(ctx, one)
			examined[i] = Examined{Domain: one, Found: isProved(one, texts), Err: err}
		})
	}
	looks.Wait()
	return examined, ctx.Err()
}
