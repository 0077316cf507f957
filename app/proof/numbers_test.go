package proof

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/goldentest"
)

// freeFailures is the default of --limit-login-account.
const freeFailures = 5

// TestGoldenNumbers checks the attempts in docs/limits.md. To update them:
//
//	go test -run Golden ./app/proof -update
func TestGoldenNumbers(t *testing.T) {
	var shortest time.Duration // in which closedAfter failures are possible
	for failures := freeFailures; failures < closedAfter; failures++ {
		shortest += delay(failures - freeFailures)
	}
	var out strings.Builder
	out.WriteString("| What | Value |\n|---|---|\n")
	for _, row := range [][2]any{
		{"first wait", delay(0)},
		{"longest wait", delay(closedAfter)},
		{"failures until unknown browsers are refused", closedAfter},
		{"shortest time for this many failures", shortest},
		{"codes of an app in a row, without a right one, until they are refused", closedAfter},
		{"a smaller number of failures is forgotten after", accountWindow},
		{"tries of a known browser", fmt.Sprintf("%d in %s", maxPerDevice, formatDuration(deviceWindow))},
		{"tries of all known browsers of an account", fmt.Sprintf("%d in %s", maxAllDevices, formatDuration(deviceWindow))},
		{"an attempt is in flight for at most", attemptLife},
		{"time from the end of the last membership until the counters of an account are deleted", counterRetention},
		{"a browser is known for", doorward.DeviceLife},
		{"failures of a client address are counted for", ipWindow},
		{"mails with a reset for an address", fmt.Sprintf("%d in %s", forgotPerAddress, formatDuration(forgotWindow))},
		{"requests for a reset from a client address", fmt.Sprintf("%d in %s", forgotPerNetwork, formatDuration(forgotWindow))},
		{"logins with a passkey alone begun from a client address", fmt.Sprintf("%d in %s", passkeysPerNetwork, formatDuration(ipWindow))},
	} {
		if d, ok := row[1].(time.Duration); ok {
			row[1] = formatDuration(d)
		}
		fmt.Fprintf(&out, "| %s | %v |\n", row[0], row[1])
	}
	goldentest.Section(t, "../../docs/limits.md", "numbers", out.String())
}

// formatDuration formats a duration with days, and without zeros after the last unit.
func formatDuration(d time.Duration) string {
	if day := 24 * time.Hour; d == day {
		return "1 day"
	} else if d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	text := d.String()
	for _, zeros := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zeros) {
			text = text[:len(text)-2]
		}
	}
	return text
}
