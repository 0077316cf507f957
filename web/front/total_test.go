package front

import (
	"encoding/json"
	"testing"

	"github.com/doorward/doorward"
)

func TestTotalOfALongList(t *testing.T) {
	for rows, want := range map[int]string{0: `{"total":0}`, doorward.MaxTotal: `{"total":10000}`, doorward.MaxTotal + 1: `{"totalAtLeast":10000}`} {
		text, err := json.Marshal(ViewTotal(doorward.Page[int]{Total: rows}))
		if err != nil || string(text) != want {
			t.Errorf("%d rows are %s, %v, want %s", rows, text, err, want)
		}
	}
}
