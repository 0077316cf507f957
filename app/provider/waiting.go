package provider

import "sync"

// waiting bounds how many responses wait for metadata on a node: anybody can send one, and each holds its form. Nobody can
// take all places: a connection has at most half of those that the others leave, and a client address half of those that
// its connection has left. So a tenant whose metadata never come, or somebody who posts a great many responses, keeps out
// few others. The zero value has none.
type waiting struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by connection, and by connection and client address
}

// enter takes a place, and reports whether there was one; then leave gives it back.
func (w *waiting) enter(conID, client string) (leave func(), ok bool) {
	keys := [2]string{conID, conID + " " + client}
	w.mu.Lock()
	defer w.mu.Unlock()
	if againWaiting-w.all <= w.of[keys[0]]+w.of[keys[1]] {
		return nil, false
	}
	w.add(keys, 1)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.add(keys, -1)
	}, true
}

func (w *waiting) add(keys [2]string, n int) {
	if w.of == nil {
		w.of = map[string]int{}
	}
	w.all += n
	for _, key := range keys {
		if w.of[key] += n; w.of[key] == 0 {
			delete(w.of, key)
		}
	}
}
