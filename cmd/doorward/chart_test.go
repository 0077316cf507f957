package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/goldentest"
)

// The chart's parts that are made from the program and from other files; update them with
//
//	go test -run Golden ./cmd/doorward -update

const chart = "../../deploy/helm/"

// TestGoldenChartSettings: the schema of the chart's values refuses names in "settings" that the file of
// settings doesn't know.
func TestGoldenChartSettings(t *testing.T) {
	schema, err := os.ReadFile(chart + "values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, name := range fileNames() {
		if name != "clock-offset" {
			known = append(known, `"`+name+`"`)
		}
	}
	names := regexp.MustCompile(`"propertyNames": \{"enum": \[.*\]\}`)
	if !names.Match(schema) {
		t.Fatal("values.schema.json has no propertyNames")
	}
	goldentest.File(t, chart+"values.schema.json", names.ReplaceAllLiteralString(string(schema), `"propertyNames": {"enum": [`+strings.Join(known, ", ")+`]}`))
}

// TestGoldenChartAlerts: the chart has the alerts of deploy/prometheus. A chart can't read files beside it.
func TestGoldenChartAlerts(t *testing.T) {
	rules, err := os.ReadFile("../../deploy/prometheus/doorward.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	goldentest.File(t, chart+"files/doorward.rules.yml", string(rules))
}
