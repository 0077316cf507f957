package freeport

import (
	"net"
	"testing"
)

func TestAddressOn(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		address := AddressOn("127.0.0.1")
		l, err := net.Listen("tcp", address)
		if err != nil || seen[address] {
			t.Fatalf("%s: %v, given before: %v", address, err, seen[address])
		}
		l.Close()
		seen[address] = true
	}
}

func TestTakenIsNotFree(t *testing.T) {
	next.Store(0)
	taken, err := net.Listen("tcp", AddressOn("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	next.Add(^uint32(0)) // back by one
	if address := AddressOn("127.0.0.1"); address == taken.Addr().String() {
		t.Errorf("%s is in use, but was returned as free", address)
	}
}
