package keyset

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// One installation has many tenants, and each may name any address.
func TestKeysInMemoryAreBounded(t *testing.T) {
	cache := New(nil, time.Now)
	start := time.Now()
	for i := range setsMax + 50 {
		cache.set(fmt.Sprint(i)).used = start.Add(time.Duration(i))
		cache.set("in use").used = start.Add(time.Duration(i))
	}
	if len(cache.sets) != setsMax || cache.sets["in use"] == nil || cache.sets["0"] != nil {
		t.Errorf("there are %d sets", len(cache.sets))
	}
	member := `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	keys, err := Parse([]byte(`{"keys":[` + strings.Repeat(member+",", 1000) + member + `]}`))
	if err != nil || len(keys) != keysOfSet {
		t.Errorf("%d keys of a set, %v", len(keys), err)
	}
}
