package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
)

// batch is how many events are read at once.
const batch = 1000

// maxFaults limits the faults, since finding their kinds takes cubic time.
const maxFaults = 32

// walk is the state of a call of Verify.
type walk struct {
	tenantID   string
	at         doorward.Position // of the last row
	seq        int64             // of the last event in order
	head       []byte            // the hash that the next event must cover
	trimmed    int64             // the last event that Sweep has deleted during the walk
	faults     []Fault
	mismatches []mismatch
	erased     []store.ErasureRecord
}

// mismatch is an event whose hash doesn't match its number and the hash before it: either the event or
// the one before it was changed.
type mismatch struct {
	store.Link
	before []byte // the hash of the event before it
}

func (w *walk) hasMaxFaults() bool { return len(w.faults)+len(w.mismatches) >= maxFaults }

// walkRest checks all remaining events.
func (w *walk) walkRest(ctx context.Context, read store.Reader, end store.Chain) error {
	if w.head == nil {
		w.seq = end.Anchor
		_, w.head = end.Start()
	}
	for {
		links, err := read.Links(ctx, w.tenantID, w.at, batch)
		if err != nil || len(links) == 0 {
			return err
		}
		if links[0].Seq > w.seq+1 {
			if err := w.skipTrimmed(ctx, read); err != nil {
				return err
			}
		}
		progress.Add(ctx, int64(len(links)))
		for _, l := range links {
			w.at = doorward.Position{At: l.Seq, ID: l.ID}
			if w.trimmed > 0 && l.Seq <= w.trimmed {
				continue
			}
			if !w.mayBeAsBlank(l) {
				if w.erased, err = read.ErasureRecords(ctx, w.tenantID); err != nil { // there may be a new one
					return err
				}
			}
			if w.step(l); w.hasMaxFaults() {
				return nil
			}
		}
	}
}

// skipTrimmed continues after the events that Sweep has deleted during the walk.
func (w *walk) skipTrimmed(ctx context.Context, read store.Reader) error {
	current, err := read.Chain(ctx, w.tenantID)
	if errors.Is(err, store.ErrNone) { // destroyed during the walk
		return nil
	}
	if err == nil && current.Anchor > w.seq {
		w.seq, w.trimmed = current.Anchor, current.Anchor
		_, w.head = current.Start()
	}
	return err
}

// step checks the next event.
func (w *walk) step(l store.Link) {
	if l.Seq <= w.seq {
		w.addFault(Inserted, l.Seq, l.ID)
		return
	}
	hasGap := l.Seq > w.seq+1
	if hasGap {
		w.addFault(Deleted, w.seq+1, "")
	}
	w.seq = l.Seq
	switch {
	case !l.Intact(), !w.mayBeAsBlank(l):
		w.addFault(Edited, l.Seq, l.ID)
	case !hasGap && !l.Follows(w.head, l.Seq): // after a gap the previous hash is unknown
		w.mismatches = append(w.mismatches, mismatch{l, w.head})
	}
	w.head = l.Hash
}

// mayBeAsBlank reports whether Doorward may have removed what is blank in an event: in the
// installation's trail when a tenant was destroyed, in every trail by an erasure that the trail has
// recorded, except from that record.
func (w *walk) mayBeAsBlank(l store.Link) bool {
	isRecord := l.Action == doorward.AccountErase && l.Outcome == doorward.Done
	byErasure := func(blanks func(store.ErasureRecord, store.Link) bool) bool {
		return !isRecord && slices.ContainsFunc(w.erased, func(r store.ErasureRecord) bool { return blanks(r, l) })
	}
	return w.tenantID == "" || (!l.IsActorBlank() || byErasure(blanksActor)) && (!l.AreValuesBlank() || byErasure(blanksValues))
}

// blanksActor reports whether the erasure has removed what is about the actor of the event: the
// person, or a caller without an identity who acted on the person.
func blanksActor(r store.ErasureRecord, l store.Link) bool {
	isNobody := l.HasOneDigest() || l.ActorType == doorward.Anonymous || l.ActorType == doorward.System
	return l.ActorID == r.UserID || isNobody && isAbout(r, l)
}

// blanksValues reports whether the erasure has removed the values of the event.
func blanksValues(r store.ErasureRecord, l store.Link) bool {
	return isAbout(r, l) || l.HasOneDigest() && l.ActorID == r.UserID
}

// isAbout reports whether the event is about the person, or about an invitation to the person.
func isAbout(r store.ErasureRecord, l store.Link) bool {
	return l.Target.ID == r.UserID || slices.ContainsFunc(r.Changes, func(c doorward.Change) bool {
		return c.Field == doorward.FieldBlankedInvitation && l.Target.ID == c.To || c.Field == doorward.FieldBlankedEvent && l.ID == c.To
	})
}

func (w *walk) addFault(kind FaultKind, seq int64, id string) {
	w.faults = append(w.faults, Fault{kind, seq, id})
}

// result returns the faults, by number.
func (w *walk) result(end store.Chain) []Fault {
	w.explain(end.Last)
	isOfLastEvent := func(f Fault) bool { return f.Seq == w.seq }
	switch {
	case w.hasMaxFaults():
	case w.seq > end.Last:
		w.addFault(Inserted, end.Last+1, "")
	case w.seq < end.Last:
		w.addFault(CutOff, w.seq+1, "")
	case !bytes.Equal(w.head, end.Head) && !slices.ContainsFunc(w.faults, isOfLastEvent):
		w.addFault(CutOff, w.seq, "")
	}
	slices.SortStableFunc(w.faults, func(a, b Fault) int { return cmp.Compare(a.Seq, b.Seq) })
	return w.faults
}

// explain turns mismatches into faults. A mismatch whose hash was made for its own number is unchanged
// itself: it only shows that the event before it was edited.
func (w *walk) explain(last int64) {
	for _, m := range w.mismatches {
		seq, isUnchanged := w.originalSeq(m)
		switch {
		case m.Seq > last: // beyond the end, reported by result
		case !isUnchanged:
			w.addFault(Edited, m.Seq, m.ID)
		case seq != m.Seq:
			w.addFault(Reordered, m.Seq, m.ID)
		}
	}
	// Each event looks unchanged by itself, but together they don't match, so one was edited. It is
	// unknown which one: the first is named.
	if len(w.mismatches) > 0 && len(w.faults) == 0 && w.mismatches[0].Seq <= last {
		w.addFault(Edited, w.mismatches[0].Seq, w.mismatches[0].ID)
	}
}

// originalSeq returns the number for which the mismatch's hash was made. It tries the numbers and hashes
// of all mismatches, and finds none if the event itself was edited.
func (w *walk) originalSeq(m mismatch) (seq int64, found bool) {
	for _, other := range w.mismatches {
		for _, previous := range [][]byte{other.before, other.Hash, other.Sum(other.before)} {
			for _, at := range w.mismatches {
				for _, seq := range []int64{at.Seq, at.Seq + 1} {
					if m.Follows(previous, seq) {
						return seq, true
					}
				}
			}
		}
	}
	return 0, false
}
