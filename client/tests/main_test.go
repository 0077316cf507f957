package client_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// running is the Doorward of the examples, and of all tests that don't disturb it.
var running = sync.OnceValue(func() *doorwardtest.Server { return doorwardtest.Start(runTB) })

// runTB is a testing.TB that lasts for the complete run, for doorwardtest.
var runTB = &lastingTB{}

type lastingTB struct {
	testing.TB // nil: only the methods below are called
	folder     string
	cleanups   []func()
}

func (*lastingTB) Helper()             {}
func (w *lastingTB) Cleanup(fn func()) { w.cleanups = append(w.cleanups, fn) }
func (w *lastingTB) TempDir() string   { return w.folder }

func (w *lastingTB) Errorf(format string, args ...any) { w.Fatalf(format, args...) }

func (*lastingTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "client-test-")
	if err != nil {
		panic(err)
	}
	runTB.folder = folder
	code := m.Run()
	for _, clean := range runTB.cleanups {
		clean()
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

var tenants atomic.Int64

// newTenant returns a new tenant of the running Doorward.
func newTenant() *doorwardtest.Tenant {
	return running().Tenant("Acme " + strconv.FormatInt(tenants.Add(1), 10))
}

// person returns a person with the role in a new tenant.
func person(role string) *doorwardtest.Person {
	n := tenants.Add(1)
	return newTenant().Join(fmt.Sprintf("person%d@acme.example", n), role)
}
