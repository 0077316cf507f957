// Command timing shows whether the time of an answer reveals that an address has an account,
// or that an account has a second factor. It starts a real server with the password
// parameters of production. It asks in pairs, about one address with an account (or a factor)
// and one without, in random order, so that other load affects both.
//
// For each question it prints the probability that an answer about an address with an account
// (or a factor) takes longer than one about an address without (Vargha and Delaney's A; 0.5:
// time reveals nothing), the z of the Mann–Whitney test, and the median of the differences
// within pairs. A z beyond ±2.6 occurs by chance once in a hundred runs. With -flood, other
// clients ask for resets as fast as they can during the measurement.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/store"
)

func main() {
	pairs := flag.Int("pairs", 1000, "pairs of requests for each question")
	database := flag.String("database", "", "empty database for the server (default SQLite in a folder of its own)")
	flood := flag.Int("flood", 0, "connections that send forgot-password at the same time for random addresses")
	flag.Parse()
	if err := run(*pairs, *database, *flood); err != nil {
		fmt.Fprintln(os.Stderr, "timing:", err)
		os.Exit(1)
	}
}

// question is a request whose answer must not reveal, by its time, for which of two addresses
// it was: by default one that has an account, or one that has none.
type question struct {
	name, path string
	status     int
	body       func(email string) map[string]string
	one, other func(n int) string // nil: knownEmail and unknownEmail
}

func (q question) addresses(n int) (one, other string) {
	if q.one == nil {
		return knownEmail(n), unknownEmail(n)
	}
	return q.one(n), q.other(n)
}

var questions = []question{
	{"login, wrong password", "/api/v2/auth/login", http.StatusUnauthorized, func(email string) map[string]string {
		return map[string]string{"email": email, "password": "not the password"}
	}, nil, nil},
	{"login, over-long password", "/api/v2/auth/login", http.StatusUnauthorized, func(email string) map[string]string {
		return map[string]string{"email": email, "password": strings.Repeat("x", 1500)}
	}, nil, nil},
	{"login, account or invalid address", "/api/v2/auth/login", http.StatusUnauthorized, func(email string) map[string]string {
		return map[string]string{"email": strings.Replace(email, "nobody", "no body", 1), "password": "not the password"}
	}, nil, nil},
	{"login, with a factor or without", "/api/v2/auth/login", http.StatusUnauthorized, func(email string) map[string]string {
		return map[string]string{"email": email, "password": "not the password"}
	}, emailWithFactor, knownEmail},
	{"forgot-password", "/api/v2/auth/forgot-password", http.StatusAccepted, func(email string) map[string]string {
		return map[string]string{"email": email}
	}, nil, nil},
	{"forgot-password, factor or none", "/api/v2/auth/forgot-password", http.StatusAccepted, func(email string) map[string]string {
		return map[string]string{"email": email}
	}, emailWithFactor, emailWithoutFactor},
}

// All addresses have the same length, so that all bodies do.
func knownEmail(n int) string         { return fmt.Sprintf("person%06d@acme.example", n) }
func unknownEmail(n int) string       { return fmt.Sprintf("nobody%06d@acme.example", n) }
func emailWithFactor(n int) string    { return fmt.Sprintf("factor%06d@acme.example", n) }
func emailWithoutFactor(n int) string { return fmt.Sprintf("single%06d@acme.example", n) } // used in one question only

func run(pairs int, database string, connections int) error {
	dir, err := os.MkdirTemp("", "doorward-timing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if database == "" {
		database = "sqlite:" + filepath.Join(dir, "doorward.db")
	}
	if err := populate(database, pairs); err != nil {
		return err
	}
	s, err := serve(dir, database)
	if err != nil {
		return err
	}
	defer s.stop()
	answered, stop := s.flood(connections)
	defer func() { stop(); fmt.Printf("%d requests of the flood were answered\n", answered.Load()) }()
	fmt.Printf("%-32s %7s %7s %7s %12s\n", "QUESTION", "PAIRS", "A", "Z", "MEDIAN DIFF")
	for _, q := range questions {
		if err := s.measure(q, pairs); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
	}
	return nil
}

// populate adds accounts that share one hash with the parameters of production.
func populate(dsn string, accounts int) error {
	ctx := context.Background()
	db, err := store.Open(ctx, dsn, time.Now)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	hash, err := argon.NewPool(argon.Default, argon.Options{}).Hash(ctx, "four quiet green llamas")
	if err != nil {
		return err
	}
	_, err = db.Write(ctx, func(tx *store.Tx) error {
		tenant := doorward.Tenant{ID: doorward.NewID(doorward.PrefixTenant), Name: "Acme", Status: doorward.TenantActive, CreatedAt: tx.Now}
		err := tx.InsertTenant(ctx, tenant)
		for n := 0; n < accounts && err == nil; n++ {
			err = cmp.Or(
				insert(ctx, tx, tenant.ID, knownEmail(n), hash, withoutFactor), insert(ctx, tx, tenant.ID, emailWithoutFactor(n), hash, withoutFactor),
				insert(ctx, tx, tenant.ID, emailWithFactor(n), hash, withFactor),
			)
		}
		return err
	})
	return err
}

// Whether insert adds a second factor.
const withoutFactor, withFactor = false, true

func insert(ctx context.Context, tx *store.Tx, tenantID, email, hash string, hasFactor bool) error {
	id := doorward.NewID(doorward.PrefixUser)
	if _, err := tx.InsertAccount(ctx, doorward.Account{ID: id, Email: email, PasswordHash: hash, CreatedAt: tx.Now}); err != nil {
		return err
	}
	if hasFactor {
		f := doorward.Factor{ID: doorward.NewID(doorward.PrefixFactor), UserID: id, Kind: doorward.TOTP, Name: "App", CreatedAt: tx.Now, ConfirmedAt: &tx.Now}
		if _, err := tx.InsertFactor(ctx, store.Factor{Factor: f, SeedSealed: make([]byte, 60)}); err != nil {
			return err
		}
		if err := tx.UpdateFactorCounts(ctx, id); err != nil {
			return err
		}
	}
	_, err := tx.InsertMembership(ctx, doorward.User{ID: id, TenantID: tenantID, Role: doorward.RoleUser, Status: doorward.UserActive, CreatedAt: tx.Now})
	return err
}

// server is a running doorward.
type server struct {
	cmd *exec.Cmd
	url string
}

// unlimited is a limit that is never reached here. With no limit the server would not
// count requests, and counting is part of the measured time.
const unlimited = "1000000"

func serve(dir, database string) (*server, error) {
	binary := filepath.Join(dir, "doorward")
	build := exec.Command("go", "build", "-o", binary, "./cmd/doorward")
	build.Dir = ".." // the module of the server; "go -C bench run" is in its own
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &server{url: "http://" + address, cmd: exec.Command(binary, "serve", "--listen", address, "--database", database,
		"--log-level", "error", "--smtp", "file:"+filepath.Join(dir, "mail"), "--limit-login-account", unlimited, "--limit-login-ip", unlimited, "--trusted-proxies", "127.0.0.1/32,::1/128")}
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		if res, err := http.Get(s.url + "/readyz"); err == nil {
			res.Body.Close()
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return nil, errors.New("the server does not answer")
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill() // its data isn't needed any more
	_ = s.cmd.Wait()
}

// post returns a request with a client address of its own, because one address may ask for
// only thirty resets an hour.
func post(ctx context.Context, url, body string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	n := rand.Uint32()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", byte(n>>16), byte(n>>8), byte(n)))
	return req, nil
}

// ask returns how long the answer took.
func (s *server) ask(q question, email string) (time.Duration, error) {
	text, err := json.Marshal(q.body(email))
	if err != nil {
		return 0, err
	}
	req, err := post(context.Background(), s.url+q.path, string(text))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	took := time.Since(began)
	if err == nil && res.StatusCode != q.status {
		err = fmt.Errorf("%d instead of %d: %s", res.StatusCode, q.status, answer)
	}
	return took, err
}

func (s *server) measure(q question, pairs int) error {
	var ones, others, differences []time.Duration
	for n := range pairs {
		one, other := q.addresses(n)
		order := []string{one, other}
		if rand.IntN(2) == 0 {
			slices.Reverse(order)
		}
		took := map[string]time.Duration{}
		for _, email := range order {
			t, err := s.ask(q, email)
			if err != nil {
				return err
			}
			took[email] = t
		}
		ones, others = append(ones, took[one]), append(others, took[other])
		differences = append(differences, took[one]-took[other])
	}
	a, z := mannWhitney(ones, others)
	slices.Sort(differences)
	fmt.Printf("%-32s %7d %7.3f %7.2f %12v\n", q.name, pairs, a, z, differences[len(differences)/2])
	return nil
}

// flood sends forgot-password for random addresses over this many connections until it
// is stopped, and counts the answers.
func (s *server) flood(connections int) (answered *atomic.Int64, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	answered = &atomic.Int64{}
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			for ctx.Err() == nil {
				body := fmt.Sprintf(`{"email":"x%d@flood.example"}`, rand.Uint64())
				req, err := post(ctx, s.url+"/api/v2/auth/forgot-password", body)
				if err != nil {
					return
				}
				if res, err := client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
					answered.Add(1)
				}
			}
		})
	}
	return answered, func() { cancel(); all.Wait() }
}

// mannWhitney returns the probability that one of xs is greater than one of ys, and how
// many standard deviations that is from one half if both come from one distribution
// (Mann and Whitney 1947). It doesn't correct for ties, which are rare in nanoseconds.
func mannWhitney(xs, ys []time.Duration) (a, z float64) {
	type sample struct {
		took time.Duration
		isX  bool
	}
	var all []sample
	for _, t := range xs {
		all = append(all, sample{t, true})
	}
	for _, t := range ys {
		all = append(all, sample{t, false})
	}
	slices.SortFunc(all, func(a, b sample) int { return cmp.Compare(a.took, b.took) })
	ranks := 0.0
	for i, s := range all {
		if s.isX {
			ranks += float64(i + 1)
		}
	}
	n, m := float64(len(xs)), float64(len(ys))
	u := ranks - n*(n+1)/2
	return u / (n * m), (u - n*m/2) / math.Sqrt(n*m*(n+m+1)/12)
}
