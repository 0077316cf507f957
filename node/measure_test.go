package node_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/goldentest"
	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/pgtest"
)

// metric is a metric as a scrape has it.
type metric struct {
	name, kind, help string
	labels           []string // the names, sorted
	series           []string // as printed, without values
}

// insecureClient accepts any certificate, for the test's own servers.
var insecureClient = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// scrape asks a running server for its metrics, in the order of their names.
func scrape(t *testing.T, server *doorwardtest.Server) (all []*metric) {
	t.Helper()
	res, err := insecureClient.Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %d %v\n%s", res.StatusCode, err, text)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		words := strings.SplitN(line, " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			all = append(all, &metric{name: words[2], help: words[3]})
		case strings.HasPrefix(line, "# TYPE "):
			all[len(all)-1].kind = words[3]
		default:
			all[len(all)-1].add(line[:strings.LastIndexByte(line, ' ')])
		}
	}
	return all
}

// call sends a request, whatever the answer. A route has metrics once it has answered one.
func call(t *testing.T, server *doorwardtest.Server, method, path string) {
	t.Helper()
	req, err := http.NewRequest(method, server.URL+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := insecureClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}

// scrapeBoth returns the metrics on PostgreSQL with TLS, which has one of its own, and those
// that only SQLite has.
func scrapeBoth(t *testing.T) []*metric {
	t.Helper()
	secured := startTLS(t, doorwardtest.Database(pgtest.DSN(t))).Server
	call(t, secured, http.MethodPost, "/api/v2/auth/login")
	all := scrape(t, secured)
	for _, m := range scrape(t, doorwardtest.Start(t)) {
		if !slices.ContainsFunc(all, func(other *metric) bool { return other.name == m.name }) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *metric) int { return strings.Compare(a.name, b.name) })
	return all
}

var labelName = regexp.MustCompile(`(\w+)="`)

func (m *metric) add(series string) {
	m.series = append(m.series, series)
	for _, l := range labelName.FindAllStringSubmatch(series, -1) {
		if l[1] != "le" && !slices.Contains(m.labels, l[1]) {
			m.labels = append(m.labels, l[1])
		}
	}
	slices.Sort(m.labels)
}

func isOurs(m *metric) bool { return strings.HasPrefix(m.name, "doorward_") }

// TestGoldenMetrics: docs/metrics.md has a row for each metric; update it with
// go test -run Golden ./node -update.
func TestGoldenMetrics(t *testing.T) {
	var table strings.Builder
	table.WriteString("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n")
	for _, m := range scrapeBoth(t) {
		if isOurs(m) {
			fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.name, m.kind, m.describeLabels(), m.help)
		}
	}
	goldentest.Section(t, "../docs/metrics.md", "metrics", table.String())
}

// fixedLabels are the labels whose values are a fixed set, the same on every node.
var fixedLabels = []string{"result", "state", "status"}

// describeLabels returns the labels, with all values of those in fixedLabels.
func (m *metric) describeLabels() string {
	all := make([]string, len(m.labels))
	for i, name := range m.labels {
		all[i] = "`" + name + "`"
		if slices.Contains(fixedLabels, name) {
			all[i] += ": " + strings.Join(m.values(name), ", ")
		}
	}
	return strings.Join(all, "; ")
}

func (m *metric) values(label string) (all []string) {
	for _, series := range m.series {
		for _, pair := range labelPair.FindAllStringSubmatch(series, -1) {
			if pair[1] == label && !slices.Contains(all, pair[2]) {
				all = append(all, pair[2])
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestMetricsKeepTheConventions of https://prometheus.io/docs/practices/naming/, and
// contain nothing that a caller chooses.
func TestMetricsKeepTheConventions(t *testing.T) {
	server := doorwardtest.Start(t)
	callEach := func(chosen string) {
		for _, path := range []string{"/no/such/" + chosen, "/api/v2/users/usr_" + chosen, "/api/v2/auth/login?route=" + chosen, "/api/v2/access/check?action=" + chosen} {
			for _, method := range []string{"GET", "POST", strings.ToUpper(chosen)} {
				call(t, server, method, path)
			}
		}
	}
	callEach("one")
	scrape(t, server) // the route of metrics has its own
	before := scrape(t, server)
	callEach("another")
	series := map[string][]string{}
	for _, m := range before {
		series[m.name] = m.series
	}
	for _, m := range scrape(t, server) {
		if !slices.Equal(m.series, series[m.name]) {
			t.Errorf("requests create series of %s: %q", m.name, m.series)
		}
		if !isOurs(m) {
			continue
		}
		if total := strings.HasSuffix(m.name, "_total"); total != (m.kind == "counter") {
			t.Errorf("%s is a %s", m.name, m.kind)
		}
		if strings.Contains(m.name, "milli") || strings.Contains(m.name, "micro") || !strings.HasSuffix(m.help, ".") && !strings.Contains(m.help, ";") {
			t.Errorf("%s: %q: want base units, and a help that is a sentence", m.name, m.help)
		}
	}
}

// metricOf returns the value of a series.
func metricOf(t *testing.T, server *doorwardtest.Server, series string) float64 {
	t.Helper()
	return metricAt(t, server.URL, series)
}

// metricAt returns the value of a series at the server with this address.
func metricAt(t *testing.T, address, series string) float64 {
	t.Helper()
	value, err := readMetric(address, series)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func readMetric(address, series string) (value float64, err error) {
	text, err := readMetrics(address)
	if err != nil {
		return 0, err
	}
	return metricIn(text, series)
}

func readMetrics(address string) (text string, err error) {
	req, err := http.NewRequest(http.MethodGet, address+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept-Encoding", "identity") // compressing half a megabyte would take most of the time
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	return string(all), err
}

func metricIn(text, series string) (value float64, err error) {
	_, after, _ := strings.Cut("\n"+text, "\n"+series+" ")
	if _, err := fmt.Sscan(after, &value); err != nil {
		return 0, fmt.Errorf("there is no %s: %w", series, err)
	}
	return value, nil
}

// TestMetricsCount: each metric follows what it measures, on both databases.
func TestMetricsCount(t *testing.T) {
	t.Parallel()
	for engine, options := range map[string]func(*testing.T) []doorwardtest.Option{
		"sqlite": func(*testing.T) []doorwardtest.Option { return nil },
		"postgres": func(t *testing.T) []doorwardtest.Option {
			return []doorwardtest.Option{doorwardtest.Database(pgtest.DSN(t))}
		},
	} {
		t.Run(engine, func(t *testing.T) {
			server := doorwardtest.Start(t, options(t)...)
			token := server.Tenant("Acme").Join("ann@acme.example", "USER").Login()
			logins := `doorward_http_requests_total{method="POST",route="/api/v2/auth/login",status="2xx"}`
			before := metricOf(t, server, logins)
			if before < 1 || metricOf(t, server, "doorward_password_hashes_total") < 2 || metricOf(t, server, `doorward_mail_tries_total{result="sent"}`) < 1 {
				t.Errorf("%v logins were counted; logins, hashes or mails are missing", before)
			}
			for path, series := range map[string]string{
				"/api/v2/access/check?action=message.send": `doorward_access_checks_total{result="allowed"}`,
				"/api/v2/access/check?action=user.invite":  `doorward_access_checks_total{result="forbidden"}`,
				"/api/v2/auth/session":                     `doorward_http_requests_total{method="GET",route="/api/v2/auth/session",status="2xx"}`,
				"/api/v2/users/usr_absent":                 `doorward_http_requests_total{method="GET",route="/api/v2/users/{id}",status="4xx"}`,
				"/no/such/path":                            `doorward_http_requests_total{method="other",route="none",status="4xx"}`,
			} {
				before, _ := readMetric(server.URL, series) // absent before the first request
				req, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Cookie", "JSESSIONID="+token)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if after := metricOf(t, server, series); after != before+1 {
					t.Errorf("%s: %s went from %v to %v", path, series, before, after)
				}
			}
			for series, want := range map[string]float64{"doorward_nodes": 1, "doorward_database_up": 1, "doorward_mails_queued": 0, "doorward_mail_oldest_queued_seconds": 0, "doorward_last_backup_timestamp_seconds": 0} {
				if got := metricOf(t, server, series); got != want {
					t.Errorf("%s is %v, want %v", series, got, want)
				}
			}
			if err := server.Node.App.Installation.BackedUp(t.Context(), doorward.OperatorAtTerminal(), "/var/backups/1.db"); err != nil {
				t.Fatal(err)
			}
			if at, now := metricOf(t, server, "doorward_last_backup_timestamp_seconds"), server.Node.App.Now(); at < float64(now.Unix()-60) || at > float64(now.Unix()+1) {
				t.Errorf("the last backup was at %f, and it is %v", at, now)
			}
			if size := metricOf(t, server, "doorward_database_size_bytes"); size < 1<<16 || size > 1<<30 {
				t.Errorf("the database takes %v bytes", size)
			}
			if engine == "sqlite" && metricOf(t, server, "doorward_database_free_bytes") < 1<<16 {
				t.Error("the free space for the database is 0")
			}
			if age := metricOf(t, server, "doorward_lease_age_seconds"); age < 0 || age > 5 {
				t.Errorf("the lease is %v s old", age)
			}
			if err := server.Node.DB.Close(); err != nil {
				t.Fatal(err)
			}
			if metricOf(t, server, "doorward_database_up") != 0 {
				t.Error("the database is closed, but reported as up")
			}
		})
	}
}

const rulesFile = "../deploy/prometheus/doorward.rules.yml"

// expressions returns the PromQL of the alerts and of the dashboard.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile(rulesFile)
	if err == nil {
		err = yaml.Unmarshal(text, &rules)
	}
	if err != nil || len(rules.Groups) != 1 {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	for _, r := range rules.Groups[0].Rules {
		all = append(all, r.Expr)
		if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: the alert's text says too little", r.Alert)
		}
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	text, err = os.ReadFile("../deploy/grafana/doorward.json")
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

var (
	selector  = regexp.MustCompile(`\b((?:doorward|go|process)_\w+)(?:\{([^}]*(?:\{\w+\}[^}]*)*)\})?`)
	labelPair = regexp.MustCompile(`(\w+)="([^"]*)"`)
	suffix    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// missing returns the metrics and labels of an expression that no scrape has.
func missing(scraped []*metric, expr string) (all []string) {
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		i := slices.IndexFunc(scraped, func(m *metric) bool {
			return m.name == s[1] || m.kind == "histogram" && m.name == suffix.ReplaceAllString(s[1], "")
		})
		if i < 0 {
			all = append(all, s[1])
			continue
		}
		for _, pair := range labelPair.FindAllString(s[2], -1) {
			has := func(series string) bool { return strings.Contains(series, pair) }
			if !strings.HasPrefix(pair, "job=") && !slices.ContainsFunc(scraped[i].series, has) {
				all = append(all, s[1]+" with "+pair)
			}
		}
	}
	return all
}

// TestAlertsAndDashboardNameWhatIsThere: an alert on a renamed metric never fires.
func TestAlertsAndDashboardNameWhatIsThere(t *testing.T) {
	scraped := scrapeBoth(t)
	all := expressions(t)
	if len(all) < 40 {
		t.Errorf("only %d expressions were found: is the search still right?", len(all))
	}
	for _, expr := range all {
		if absent := missing(scraped, expr); len(absent) > 0 {
			t.Errorf("%s\nuses what no scrape has: %q", expr, absent)
		}
	}
	for wrong, want := range map[string]string{
		`rate(doorward_http_request_total[5m])`:                                                 "doorward_http_request_total",
		`doorward_http_requests_total{instance=~"$instance", route="/api/v2/auth/logins"}`:      `doorward_http_requests_total with route="/api/v2/auth/logins"`,
		`histogram_quantile(0.9, rate(doorward_access_checks_total_bucket[5m]))`:                "doorward_access_checks_total_bucket",
		`doorward_nodes > 1 and doorward_access_checks_total{job="doorward", result="refused"}`: `doorward_access_checks_total with result="refused"`,
	} {
		if got := missing(scraped, wrong); !slices.Equal(got, []string{want}) {
			t.Errorf("in %s these are missing: %q, want %q", wrong, got, want)
		}
	}
}

// TestAlertRules runs promtool on the rules and their test cases.
func TestAlertRules(t *testing.T) {
	if testing.Short() {
		t.Skip("promtool takes some seconds")
	}
	t.Parallel()
	promtool := installed.Program(t, "promtool", "prometheus")
	for _, args := range [][]string{{"check", "rules", "doorward.rules.yml"}, {"test", "rules", "doorward.test.yml"}, {"test", "rules", "doorward-days.test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}
