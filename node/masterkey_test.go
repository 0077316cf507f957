//go:build linux

package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

// sealingNode is a node with a master key file of its own.
type sealingNode struct {
	*doorwardtest.Server
	file string
}

func startSealingNode(t *testing.T, dsn, keyFile string) *sealingNode {
	t.Helper()
	n := &sealingNode{file: filepath.Join(t.TempDir(), "master.key")}
	n.replaceKeyFile(t, keyFile)
	n.Server = doorwardtest.Start(t, doorwardtest.Database(dsn), func(c *node.Config) { c.MasterKeyFile = n.file })
	return n
}

// replaceKeyFile replaces the node's file by a copy, as an operator does.
func (n *sealingNode) replaceKeyFile(t *testing.T, keyFile string) {
	t.Helper()
	text, err := os.ReadFile(keyFile)
	if err == nil {
		err = errors.Join(os.WriteFile(n.file+".new", text, 0o600), os.Rename(n.file+".new", n.file))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sealedAt(id string) seal.Place {
	return seal.Place{Table: "signing_keys", ID: id, Column: "private_sealed"}
}

// storeSealed seals a value for each id and stores it, all in one transaction.
func (n *sealingNode) storeSealed(ctx context.Context, ids ...string) error {
	return n.Node.App.Access.Upkeep(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			sealed, err := n.Node.App.MasterKey.Seal(ctx, tx, sealedAt(id), []byte("plain "+id))
			if err != nil {
				return err
			}
			if err := tx.InsertSigningKey(ctx, store.SigningKey{ID: id, Public: []byte{1}, Sealed: sealed, StartsAt: tx.Now, CreatedAt: tx.Now}); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkOpensAll checks that the node opens every value.
func (n *sealingNode) checkOpensAll(t *testing.T) {
	t.Helper()
	all, err := n.Node.DB.Read().SigningKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if plain, err := n.Node.App.MasterKey.Open(t.Context(), sealedAt(k.ID), k.Sealed); err != nil || string(plain) != "plain "+k.ID {
			t.Fatalf("%s opens as %q, %v", k.ID, plain, err)
		}
	}
}

// TestMasterKeyIsReplacedWhileNodesRun: on three nodes that seal, a rotation is killed
// half way and continued. No value is lost to any node, and the old key opens nothing
// once each node has the new file.
func TestMasterKeyIsReplacedWhileNodesRun(t *testing.T) {
	t.Parallel()
	dsn, folder := pgtest.DSN(t), t.TempDir()
	oldFile, newFile := filepath.Join(folder, "old.key"), filepath.Join(folder, "new.key")
	for _, name := range []string{oldFile, newFile} {
		if _, err := seal.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	next, err := masterkey.File{Path: newFile}.Read()
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*sealingNode
	for range 3 {
		nodes = append(nodes, startSealingNode(t, dsn, oldFile))
	}
	var before []string
	for i := range 3000 {
		before = append(before, fmt.Sprint("before", i))
	}
	if err := nodes[0].storeSealed(t.Context(), before...); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i, n := range nodes {
		writers.Go(func() {
			tick := time.NewTicker(shortPause)
			defer tick.Stop()
			for count := 0; ; count++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				if err := n.storeSealed(t.Context(), fmt.Sprint("during", i, "-", count)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	rotate := func() *exec.Cmd {
		return exec.Command(builtProgram(t), "key", "rotate-master", oldFile, newFile, "--database", dsn)
	}
	remaining := killHalfWay(t, rotate(), nodes[0].Node.DB, next)
	if out, err := rotate().CombinedOutput(); err != nil {
		t.Fatalf("continued: %v\n%s", err, out)
	} else {
		t.Logf("killed with about %d values to go, then %s", remaining, bytes.TrimSpace(out))
	}
	close(stop)
	writers.Wait()
	for _, n := range nodes {
		n.checkOpensAll(t)
	}
	startSealingNode(t, dsn, oldFile).Stop() // it may start until each node has the new file
	for i, n := range nodes {
		state, err := masterkey.ReadState(t.Context(), n.Node.DB.Read())
		if err != nil || state.Previous == "" || state.Remaining != 0 {
			t.Fatalf("with the new file on %d nodes the state is %+v, %v", i, state, err)
		}
		n.replaceKeyFile(t, newFile)
		for _, each := range nodes {
			if err := each.Node.App.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if state, err := masterkey.ReadState(t.Context(), nodes[0].Node.DB.Read()); err != nil || state.Previous != "" || state.Current != next.ID().String() {
		t.Errorf("with the new file on each node the state is %+v, %v", state, err)
	}
	cfg := node.Defaults()
	cfg.Database, cfg.Listen, cfg.MasterKeyFile, cfg.Log = dsn, "localhost:0", oldFile, slog.New(slog.DiscardHandler)
	var wrong *masterkey.WrongKeyError
	if _, err := node.Start(t.Context(), cfg); !errors.As(err, &wrong) {
		t.Errorf("a node with the old file starts with %v", err)
	}
	startSealingNode(t, dsn, newFile).checkOpensAll(t)
}

// killHalfWay starts the rotation and kills it once some values are sealed with the new key.
// It returns how many aren't; the count stops at 1,000.
func killHalfWay(t *testing.T, rotation *exec.Cmd, db *store.DB, next seal.Key) int {
	t.Helper()
	if err := rotation.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		all, err := db.Read().SealedWithOtherKeys(t.Context(), seal.HeaderOf(next.ID()), store.SealedValue{}, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) > 0 && len(all) < 2900 {
			break
		}
		if len(all) == 0 {
			t.Fatal("the rotation was finished before it could be killed")
		}
	}
	if err := rotation.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = rotation.Wait()
	state, err := masterkey.ReadState(t.Context(), db.Read())
	if err != nil || state.Remaining == 0 {
		t.Fatalf("after the kill the state is %+v, %v", state, err)
	}
	return state.Remaining
}
