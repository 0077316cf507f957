package telemetry_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/telemetry"
)

func TestMetrics(t *testing.T) {
	m := telemetry.New()
	m.Checks.Forbidden.Inc()
	m.Gauge("doorward_test_gauge", "A gauge.", func() float64 { return 7 })
	m.Counter("doorward_test_total", "A counter.", func() float64 { return 8 })
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`doorward_access_checks_total{result="forbidden"} 1`, `doorward_access_checks_total{result="allowed"} 0`,
		"doorward_test_gauge 7", "doorward_test_total 8", "go_goroutines",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	m := telemetry.New()
	b.ReportAllocs()
	for b.Loop() {
		m.Checks.Allowed.Inc()
	}
}
