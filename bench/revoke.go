package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// revocations measures the time from a logout request to its answer, on one node and on
// three.
func (b *bench) revocations() error {
	n := 500
	if !b.long {
		n = 50
	}
	dsn := "sqlite:" + filepath.Join(b.dir, "revoke.db")
	if err := b.revoke("1 node, SQLite", dsn, 1, n); err != nil {
		return err
	}
	pg, err := b.postgres()
	if err != nil {
		b.row("revocation, PostgreSQL", "not measured: "+err.Error(), "", "", "")
		return nil
	}
	defer pg.stop()
	if err := b.revoke("1 node, PostgreSQL", pg.dsn("one"), 1, n); err != nil {
		return err
	}
	return b.revoke("3 nodes, PostgreSQL", pg.dsn("three"), 3, n)
}

func (b *bench) revoke(name, dsn string, nodes, n int) error {
	if err := populate(dsn, 0, n, cheapParams); err != nil {
		return err
	}
	var servers []*process
	defer func() {
		for _, p := range servers {
			p.stop()
		}
	}()
	for range nodes {
		p, err := b.doorward(dsn)
		if err != nil {
			return err
		}
		servers = append(servers, p)
	}
	took, err := logouts(servers, n)
	if err != nil {
		return err
	}
	slices.Sort(took)
	b.row("revocation, "+name, fmt.Sprintf("median %v", took[n/2].Round(10*time.Microsecond)), "",
		fmt.Sprintf("p99 %v", took[n*99/100].Round(10*time.Microsecond)), "")
	return nil
}

// logouts ends sessions one by one and returns how long each took. Before, it loads every
// session on every node; after each logout, it checks that every node refuses the session.
func logouts(servers []*process, n int) ([]time.Duration, error) {
	for _, p := range servers {
		if err := warm(p, n); err != nil {
			return nil, err
		}
	}
	var took []time.Duration
	for i := range n {
		c, err := dial(servers[i%len(servers)].address)
		if err != nil {
			return nil, err
		}
		t := token(i)
		request := fmt.Appendf(nil, "POST /api/v2/auth/logout HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nCookie: JSESSIONID=%s\r\n\r\n",
			base64.RawURLEncoding.EncodeToString(t[:]))
		began := time.Now()
		status, body, err := c.ask(request)
		took = append(took, time.Since(began))
		c.conn.Close()
		if err != nil || status != 204 {
			return nil, fmt.Errorf("logout: %d %s: %v", status, body, err)
		}
		for _, p := range servers {
			if status, err := askOnce(p, checkRequest(i)); err != nil || status != 401 {
				return nil, fmt.Errorf("check after logout: %d: %v", status, err)
			}
		}
	}
	return took, nil
}

func askOnce(p *process, request []byte) (int, error) {
	c, err := dial(p.address)
	if err != nil {
		return 0, err
	}
	defer c.conn.Close()
	status, _, err := c.ask(request)
	return status, err
}

// cluster is the benchmark's own PostgreSQL, with fsync on.
type cluster struct {
	cmd  *exec.Cmd
	port int
	bin  string
}

func (b *bench) postgres() (*cluster, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no PostgreSQL; install Debian's postgresql")
	}
	bin := filepath.Dir(found[len(found)-1])
	data, attr, err := b.dataFolder()
	if err != nil {
		return nil, err
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "doorward", "-A", "trust", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr = attr
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	port, _ := strconv.Atoi(address[bytes.LastIndexByte([]byte(address), ':')+1:])
	c := &cluster{port: port, bin: bin}
	c.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "max_connections=200")
	c.cmd.SysProcAttr = attr
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	return c, c.create("one", "three")
}

// dataFolder returns a folder owned by a user other than root, as PostgreSQL demands, and the
// attributes of a process of that user.
func (b *bench) dataFolder() (string, *syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	data := filepath.Join(b.dir, "postgres")
	if err := os.Mkdir(data, 0o700); err != nil || os.Getuid() != 0 {
		return data, attr, err
	}
	postgres, err := user.Lookup("postgres")
	if err != nil {
		return "", nil, err
	}
	uid, _ := strconv.Atoi(postgres.Uid)
	gid, _ := strconv.Atoi(postgres.Gid)
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chmod(b.dir, 0o711); err != nil {
		return "", nil, err
	}
	return data, attr, os.Chown(data, uid, gid)
}

func (c *cluster) create(databases ...string) error {
	for _, name := range databases {
		var out []byte
		var err error
		for range 100 {
			cmd := exec.Command(filepath.Join(c.bin, "createdb"), "-h", "127.0.0.1", "-p", strconv.Itoa(c.port), "-U", "doorward", name)
			if out, err = cmd.CombinedOutput(); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("createdb: %w: %s", err, out)
		}
	}
	return nil
}

func (c *cluster) dsn(name string) string {
	return fmt.Sprintf("postgres://doorward@127.0.0.1:%d/%s?sslmode=disable", c.port, name)
}

func (c *cluster) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGQUIT) // immediate shutdown: the folder is removed anyway
	_ = c.cmd.Wait()
}
