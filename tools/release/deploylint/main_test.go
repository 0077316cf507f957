package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const deploy = "../../../deploy"

func TestWhatIsDeployedHasNoFault(t *testing.T) {
	for _, args := range [][]string{
		{"chart", deploy + "/helm", deploy + "/helm/ci/sqlite.yaml", deploy + "/helm/ci/postgres.yaml"},
		{"compose", deploy + "/compose/compose.yaml"},
		{"dockerfile", deploy + "/container/Dockerfile"},
	} {
		if findings, err := run(args); err != nil || len(findings) > 0 {
			t.Errorf("%s: %v, %v", args[0], findings, err)
		}
	}
}

// Each fault is put into files that have none.
func TestFaultsAreFound(t *testing.T) {
	const chart, workload = "helm", "helm/templates/workload.yaml"
	for name, c := range map[string]struct {
		kind, path, file, old, new, want string
	}{
		"a misspelt field":            {"chart", chart, workload, "terminationGracePeriodSeconds", "terminationGraceSeconds", "unknown field"},
		"a wrong type":                {"chart", chart, workload, "automountServiceAccountToken: false", "automountServiceAccountToken: 7", "cannot unmarshal"},
		"an incomplete template":      {"chart", chart, workload, "{{- end }}", "{{- if }}", "missing value"},
		"a missing value":             {"chart", chart, workload, ".Values.image.pullPolicy", ".Values.image.pull.policy", "nil pointer"},
		"SQLite with several nodes":   {"chart", chart, "helm/ci/sqlite.yaml", "replicas: 1", "replicas: 3", "needs PostgreSQL"},
		"a setting that has a value":  {"chart", chart, "helm/ci/sqlite.yaml", "session-limit: 5", "listen: ':1'", "has a value of its own"},
		"a value outside the schema":  {"chart", chart, "helm/ci/sqlite.yaml", "replicas: 1", "replica: 1", "replica"},
		"a misspelt setting":          {"chart", chart, "helm/ci/sqlite.yaml", "session-limit: 5", "sesion-limit: 5", "sesion-limit"},
		"a job that can't migrate":    {"chart", chart, "helm/ci/sqlite.yaml", "replicas: 1", "migration: {job: true}\nreplicas: 1", "it is for PostgreSQL"},
		"replicas of SQLite":          {"chart", chart, "helm/ci/sqlite.yaml", "replicas: 1", "autoscaling: {enabled: true}\nreplicas: 1", "autoscaling: more than one"},
		"a monitor's unknown field":   {"chart", chart, "helm/templates/podmonitor.yaml", "podMetricsEndpoints", "podMetricEndpoints", "podMetricEndpoints"},
		"no alerts":                   {"chart", chart, "helm/templates/prometheusrule.yaml", "files/doorward.rules.yml", "files/none.yml", "has no rules"},
		"less memory than by default": {"chart", chart, "helm/values.yaml", "memory: 1Gi", "memory: 512Mi", "resources.limits.memory: 536870912 bytes are less than the 851383552"},
		"more sessions than memory":   {"chart", chart, "helm/ci/sqlite.yaml", "session-limit: 5", "sessions-in-memory: 2000000", "resources.limits.memory"},
		"more hashes than memory":     {"chart", chart, "helm/ci/sqlite.yaml", "session-limit: 5", "password-memory-kib: 65536", "resources.limits.memory"},
		"more cores than memory":      {"chart", chart, "helm/values.yaml", "cores: 2", "cores: 16", "16 cores"},
		"memory that can't be read":   {"chart", chart, "helm/values.yaml", "memory: 1Gi", "memory: much", "write much as a number with Mi or Gi"},
		"an unknown key of Compose":   {"compose", "compose/compose.yaml", "compose/compose.yaml", "read_only: true", "readonly: true", "readonly"},
		"a missing service":           {"compose", "compose/compose.yaml", "compose/compose.yaml", "node1: {condition", "node4: {condition", "node4"},
		"an unknown instruction":      {"dockerfile", "container/Dockerfile", "container/Dockerfile", "STOPSIGNAL", "STOPSIG", "unknown instruction"},
		"an instruction's wrong flag": {"dockerfile", "container/Dockerfile", "container/Dockerfile", "HEALTHCHECK --interval=5s", "HEALTHCHECK --every=5s", "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(deploy)); err != nil {
				t.Fatal(err)
			}
			replaceIn(t, filepath.Join(folder, c.file), c.old, c.new)
			args := []string{c.kind, filepath.Join(folder, c.path)}
			if c.kind == "chart" {
				args = append(args, filepath.Join(folder, "helm/ci/sqlite.yaml"), filepath.Join(folder, "helm/ci/postgres.yaml"))
			}
			findings, err := run(args)
			if all := strings.Join(findings, "\n"); err != nil || !strings.Contains(all, c.want) {
				t.Errorf("found %q, %v, want something about %q", all, err, c.want)
			}
		})
	}
}

func replaceIn(t *testing.T, path, old, changed string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q to replace", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, changed, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
