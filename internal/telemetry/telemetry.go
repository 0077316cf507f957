// Package telemetry counts what Doorward does, for Prometheus.
//
// Counters of the hot path are looked up beforehand: an increment is one atomic
// addition. Gauges such as sizes and ages are read only when scraped.
//
// Names follow https://prometheus.io/docs/practices/naming/: base units, _total for
// counters. A label never has a value that a caller can choose.
package telemetry

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are those of one node. Make them with New.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	// Checks counts access checks by their result.
	Checks Checks
}

// Checks are the results of access checks.
type Checks struct {
	Allowed, Unauthenticated, Forbidden, Invalid, Limited, Unavailable prometheus.Counter
}

// durations are the bounds of request times: a read from memory, a transaction, a
// password hash or two, and the 3 s in which every request is answered.
var durations = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3}

// New returns metrics, those of the Go runtime and the process included.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "doorward_http_requests_total", Help: "Requests answered, by route and class of status; access checks are counted apart.",
		}, []string{"method", "route", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "doorward_http_request_duration_seconds", Help: "Time to answer a request, by route.", Buckets: durations,
		}, []string{"method", "route"}),
	}
	checks := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "doorward_access_checks_total", Help: "Access checks by their result.",
	}, []string{"result"})
	m.registry.MustRegister(m.requests, m.took, checks, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Checks = Checks{
		Allowed:         checks.WithLabelValues("allowed"),
		Unauthenticated: checks.WithLabelValues("unauthenticated"),
		Forbidden:       checks.WithLabelValues("forbidden"),
		Invalid:         checks.WithLabelValues("invalid"),
		Limited:         checks.WithLabelValues("limited"),
		Unavailable:     checks.WithLabelValues("unavailable"),
	}
	return m
}

// Route counts the requests to one route.
type Route struct {
	metrics         *Metrics
	method, pattern string

	first   sync.Once
	classes [5]prometheus.Counter // 1xx to 5xx
	took    prometheus.Observer
}

// Route returns the counters of a route, known by its method and pattern. They are there, at zero, once it has
// answered a request: most of the several hundred routes answer none for a long time, on most nodes.
func (m *Metrics) Route(method, pattern string) *Route {
	return &Route{metrics: m, method: method, pattern: pattern}
}

func (r *Route) begin() {
	r.took = r.metrics.took.WithLabelValues(r.method, r.pattern)
	for i, class := range []string{"1xx", "2xx", "3xx", "4xx", "5xx"} {
		if i > 0 { // net/http sends 1xx itself, and none is an answer
			r.classes[i] = r.metrics.requests.WithLabelValues(r.method, r.pattern, class)
		}
	}
}

// Answered counts a request. A status outside of 200 to 599 counts as 200: net/http answers
// that where a handler writes none, which is a status of 0 here.
func (r *Route) Answered(status int, took time.Duration) {
	r.first.Do(r.begin)
	class := status/100 - 1
	if class < 1 || class >= len(r.classes) {
		class = 1
	}
	r.classes[class].Inc()
	r.took.Observe(took.Seconds())
}

// AddBuildInfo adds doorward_build_info, with the versions of Doorward and of Go.
func (m *Metrics) AddBuildInfo(version string) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "doorward_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	info.Set(1)
	m.registry.MustRegister(info)
}

// Gauge adds a value that is read at each scrape. labels are names and
// values in turn.
func (m *Metrics) Gauge(name, help string, value func() float64, labels ...string) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: pairs(labels)}, value))
}

// Counter adds a counter that is read at each scrape. labels are names and values in
// turn.
func (m *Metrics) Counter(name, help string, value func() float64, labels ...string) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: pairs(labels)}, value))
}

func pairs(labels []string) prometheus.Labels {
	all := prometheus.Labels{}
	for i := 0; i+1 < len(labels); i += 2 {
		all[labels[i]] = labels[i+1]
	}
	return all
}

// Sample is one value of a metric that Sampled adds. Total says that it is a counter.
type Sample struct {
	Name, Help string
	Labels     []string // names and values in turn
	Value      float64
	Total      bool
}

// Sampled adds metrics that one function returns at each scrape. Metrics it doesn't
// return are absent from that scrape.
func (m *Metrics) Sampled(read func() []Sample) { m.registry.MustRegister(sampled{read}) }

type sampled struct{ read func() []Sample }

// Describe sends nothing: which metrics there are is known only at a scrape, so the registry
// can't check them beforehand.
func (s sampled) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current values.
func (s sampled) Collect(to chan<- prometheus.Metric) {
	for _, v := range s.read() {
		kind := prometheus.GaugeValue
		if v.Total {
			kind = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(v.Name, v.Help, nil, pairs(v.Labels)), kind, v.Value)
	}
}

// Handler serves the metrics in the format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
