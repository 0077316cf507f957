package doorward_test

import (
	"testing"

	"github.com/doorward/doorward"
)

// BenchmarkMay is the decision of a role: a bit in a set.
func BenchmarkMay(b *testing.B) {
	b.ReportAllocs()
	role, allowed := doorward.RoleUser, 0
	for b.Loop() {
		if role.May(doorward.MessageSend) {
			allowed++
		}
	}
	if allowed == 0 {
		b.Fatal("a USER may not send messages")
	}
}
