// Package telemetry counts what Doorward does, for Prometheus.
//
// What is counted on the hot path is a counter that was looked up beforehand:
// an increment is one atomic addition. What others know already (sizes, ages)
// is asked for only when it is scraped.
package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are those of one node. Make them with New.
type Metrics struct {
	registry *prometheus.Registry
	// Checks counts access checks by their result.
	Checks Checks
}

// Checks are the results of access checks.
type Checks struct {
	Allowed, Unauthenticated, Forbidden, Unavailable prometheus.Counter
}

// New returns metrics, those of the Go runtime and the process included.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	checks := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "doorward_access_checks_total", Help: "Access checks by their result.",
	}, []string{"result"})
	m.registry.MustRegister(checks, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Checks = Checks{
		Allowed:         checks.WithLabelValues("allowed"),
		Unauthenticated: checks.WithLabelValues("unauthenticated"),
		Forbidden:       checks.WithLabelValues("forbidden"),
		Unavailable:     checks.WithLabelValues("unavailable"),
	}
	return m
}

// Gauge adds a value that is asked for when it is scraped.
func (m *Metrics) Gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Counter adds a count that somebody else keeps.
func (m *Metrics) Counter(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
}

// Handler serves the metrics in the format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
