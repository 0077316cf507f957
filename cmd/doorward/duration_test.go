package main

import (
	"testing"
	"time"
)

func TestDurationsHaveDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "24h": 24 * time.Hour, "0s": 0, "-1s": -time.Second,
		"7d": 7 * oneDay, "0d": 0, "1d12h": 36 * time.Hour, "007d": 7 * oneDay, "65535d": 65535 * oneDay,
	} {
		d, err := parseDuration(text)
		if err != nil || d != want {
			t.Errorf("%s is %v, %v; want %v", text, d, err, want)
		}
		if again, err := parseDuration(formatDuration(d)); err != nil || again != d {
			t.Errorf("%s is written as %s, which is %v, %v", text, formatDuration(d), again, err)
		}
	}
	for _, text := range []string{"", "7", "d", "-1d", "+1d", "1.5d", "1d-1h", "1d1d", "12h1d", "1d 2h", "65536d", "7D", "1w"} {
		if d, err := parseDuration(text); err == nil {
			t.Errorf("%q is taken as %v", text, d)
		}
	}
}
