package store

import (
	"cmp"
	"context"
	"time"

	"github.com/doorward/doorward"
)

func runFields(r *doorward.DirectoryRun) []any {
	return []any{
		&r.ID, &r.ConnectionID, &r.TenantID, (*storedTime)(&r.From), (*storedTime)(&r.Last), &r.Made, &r.Changed, &r.Suspended, &r.Removed, &r.IsAlarmed,
		&r.Undo, &r.UndoBy,
		nullableTime{&r.UndoAt},
		&r.Undone, &r.Left,
	}
}

const (
	selectRun = `SELECT r.id, r.connection_id, r.tenant_id, r.began_at, r.last_at, r.made, r.changed, r.suspended, r.removed, r.alarmed,
  r.undo_state, r.undo_by, r.undo_at, r.undone, r.left_as_is FROM directory_runs r `

	sqlDirectoryRun = selectRun + `WHERE r.connection_id = $1 AND r.id = $2`
	sqlAlarmedRuns  = selectRun + `JOIN connections c ON c.id = r.connection_id WHERE c.tenant_id = $1 AND r.last_at > $2 AND r.alarmed AND r.undo_state = '' ORDER BY r.last_at DESC LIMIT $3`
	sqlLastRun      = selectRun + `WHERE r.connection_id = $1 ORDER BY r.last_at DESC LIMIT 1`
	sqlInsertRun    = `INSERT INTO directory_runs (id, connection_id, tenant_id, began_at, last_at) VALUES ($1, $2, $3, $4, $4)`
	sqlUpdateRun    = `UPDATE directory_runs SET last_at = $2, made = $3, changed = $4, suspended = $5, removed = $6, alarmed = $7 WHERE id = $1`
	sqlLastRuns     = `SELECT r.connection_id, max(r.last_at) FROM directory_runs r JOIN connections c ON c.id = r.connection_id WHERE c.tenant_id = $1 GROUP BY r.connection_id`
	sqlDeleteRuns   = `DELETE FROM directory_runs WHERE id IN (SELECT id FROM directory_runs WHERE last_at < $1 ORDER BY last_at LIMIT $2)`
)

var runPages = newPages(listing[doorward.DirectoryRun]{
	head: selectRun, count: "FROM directory_runs r ", where: "WHERE r.connection_id = $1\n", args: 1,
	fields: runFields, id: "r.id", idOf: func(r doorward.DirectoryRun) string { return r.ID },
	orders:       []order[doorward.DirectoryRun]{{name: "from", column: "r.began_at", number: func(r doorward.DirectoryRun) int64 { return micros(r.From) }}},
	defaultOrder: "-from",
})

// DirectoryRunPage returns runs of the connection's directory, usually the latest first. Errors: validation_failed, for an
// unknown order.
func (r Reader) DirectoryRunPage(ctx context.Context, connectionID string, w doorward.Window) (doorward.Page[doorward.DirectoryRun], error) {
	return runPages.read(ctx, r, w, connectionID)
}

// DirectoryRun returns the run of the connection's directory, or ErrNone.
func (r Reader) DirectoryRun(ctx context.Context, connectionID, id string) (doorward.DirectoryRun, error) {
	return one(ctx, r, runFields, sqlDirectoryRun, connectionID, id)
}

// LastDirectoryRun returns the run of the connection's directory with the latest write, or ErrNone.
func (r Reader) LastDirectoryRun(ctx context.Context, connectionID string) (doorward.DirectoryRun, error) {
	return one(ctx, r, runFields, sqlLastRun, connectionID)
}

// AlarmedRuns returns the runs of the tenant's directories of which OWNERs were told, and that nobody takes back, with their
// last write after an instant: the newest first, at most limit.
func (r Reader) AlarmedRuns(ctx context.Context, tenantID string, after time.Time, limit int) ([]doorward.DirectoryRun, error) {
	return list(ctx, r, runFields, sqlAlarmedRuns, tenantID, micros(after), limit)
}

// LastDirectoryWrites returns when the directory of each connection of the tenant last changed something, of those that
// have within the time for which runs are kept.
func (r Reader) LastDirectoryWrites(ctx context.Context, tenantID string) (map[string]time.Time, error) {
	type last struct {
		connectionID string
		at           time.Time
	}
	all, err := list(ctx, r, func(l *last) []any { return []any{&l.connectionID, (*storedTime)(&l.at)} }, sqlLastRuns, tenantID)
	by := map[string]time.Time{}
	for _, l := range all {
		by[l.connectionID] = l.at
	}
	return by, err
}

// InsertDirectoryRun adds a run that begins now. It needs the lock on the tenant.
func (tx *Tx) InsertDirectoryRun(ctx context.Context, r doorward.DirectoryRun) error {
	return tx.run(ctx, sqlInsertRun, r.ID, r.ConnectionID, r.TenantID, micros(tx.Now))
}

// UpdateDirectoryRun writes the numbers of the run, its last write and whether OWNERs were told. It needs the lock on the
// tenant.
func (tx *Tx) UpdateDirectoryRun(ctx context.Context, r doorward.DirectoryRun) error {
	return tx.run(ctx, sqlUpdateRun, r.ID, micros(r.Last), r.Made, r.Changed, r.Suspended, r.Removed, r.IsAlarmed)
}

// DeleteOldDirectoryRuns deletes at most limit runs whose last write was before an instant, and returns how many.
func (tx *Tx) DeleteOldDirectoryRuns(ctx context.Context, before time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteRuns, micros(before), limit)
}

func effectFields(e *doorward.DirectoryEffect) []any {
	return []any{&e.ID, &e.RunID, &e.ConnectionID, &e.TenantID, (*storedTime)(&e.At), &e.Kind, &e.SubjectID, &e.UserID, &e.Address, &e.Before, &e.After, &e.Undone}
}

const (
	selectEffect = `SELECT e.id, e.run_id, e.connection_id, e.tenant_id, e.at, e.kind, e.subject_id, e.user_id, e.address, e.before, e.after, e.undone FROM directory_effects e `

	sqlInsertEffect = `INSERT INTO directory_effects (id, run_id, connection_id, tenant_id, at, kind, subject_id, user_id, address, before, after)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	// The ids of the account $1 as a subject of effects.
	subjectsOf = `SELECT $1 UNION ALL SELECT d.id FROM directory_users d WHERE d.user_id = $1 UNION ALL SELECT o.subject_id FROM directory_effects o WHERE o.user_id = $1`

	// Of people without an account the address alone says who they are.
	sqlDeleteMovesTo    = `DELETE FROM directory_moves WHERE member_id IN (SELECT e.subject_id FROM directory_effects e WHERE e.address = $1 AND e.user_id = '')`
	sqlDeleteEffectsTo  = `DELETE FROM directory_effects WHERE address = $1 AND user_id = ''`
	sqlDeleteEffectsOf  = `DELETE FROM directory_effects WHERE subject_id IN (` + subjectsOf + `)`
	sqlDeleteMovesOf    = `DELETE FROM directory_moves WHERE member_id IN (` + subjectsOf + `)`
	sqlDeleteOldEffects = `DELETE FROM directory_effects WHERE id IN (SELECT id FROM directory_effects WHERE at < $1 ORDER BY at LIMIT $2)`
	// People, as members of the tenant, whose access ended, and not those whom an undo has brought back.
	endedBy = `SELECT DISTINCT e.subject_id FROM directory_effects e
WHERE e.connection_id = $1 AND e.at > $2 AND e.kind IN ('suspended', 'removed') AND e.user_id <> '' AND e.undone <> 'done'`
	sqlCountEnded = `SELECT count(*) FROM (` + endedBy + `) x`
	// More than 50 needn't be counted.
	sqlCountUntold = `SELECT count(*) FROM (` + endedBy + `
AND e.run_id IN (SELECT r.id FROM directory_runs r WHERE r.connection_id = $1 AND NOT r.alarmed) LIMIT 50) x`
	sqlCountBegun = `SELECT count(*) FROM (SELECT DISTINCT e.subject_id FROM directory_effects e
WHERE e.connection_id = $1 AND e.at > $2 AND e.kind IN ('made', 'resumed') AND e.user_id <> '' AND e.undone <> 'done') x`
)

var effectPages = newPages(listing[doorward.DirectoryEffect]{
	head: selectEffect, count: "FROM directory_effects e ", where: "WHERE e.run_id = $1\n", args: 1,
	fields: effectFields, id: "e.id", idOf: func(e doorward.DirectoryEffect) string { return e.ID },
	orders:       []order[doorward.DirectoryEffect]{{name: "at", column: "e.at", number: func(e doorward.DirectoryEffect) int64 { return micros(e.At) }}},
	defaultOrder: "at",
})

// DirectoryEffectPage returns effects of the run, usually the oldest first. Errors: validation_failed, for an unknown order.
func (r Reader) DirectoryEffectPage(ctx context.Context, runID string, w doorward.Window) (doorward.Page[doorward.DirectoryEffect], error) {
	return effectPages.read(ctx, r, w, runID)
}

// InsertDirectoryEffect records what a write of a directory has changed, now.
func (tx *Tx) InsertDirectoryEffect(ctx context.Context, e doorward.DirectoryEffect) error {
	return tx.run(ctx, sqlInsertEffect, e.ID, e.RunID, e.ConnectionID, e.TenantID, micros(tx.Now), string(e.Kind), e.SubjectID, e.UserID, e.Address, e.Before, e.After)
}

// CountUntoldOfDirectory is CountEndedByDirectory without runs of which OWNERs were told; more than 50 count as 50.
func (r Reader) CountUntoldOfDirectory(ctx context.Context, connectionID string, since time.Time) (int, error) {
	return one(ctx, r, countColumn, sqlCountUntold, connectionID, micros(since))
}

// CountEndedByDirectory returns how many members the connection's directory has suspended or removed since an instant,
// without those whom an undo has brought back.
func (r Reader) CountEndedByDirectory(ctx context.Context, connectionID string, since time.Time) (int, error) {
	return one(ctx, r, countColumn, sqlCountEnded, connectionID, micros(since))
}

// CountBegunByDirectory returns how many members it has made or resumed since, without those of whom an undo has taken that back.
func (r Reader) CountBegunByDirectory(ctx context.Context, connectionID string, since time.Time) (int, error) {
	return one(ctx, r, countColumn, sqlCountBegun, connectionID, micros(since))
}

// DeleteDirectoryEffectsOf deletes what is recorded of an account, and of people without one who were invited by one of the
// canonical addresses, for its erasure.
func (tx *Tx) DeleteDirectoryEffectsOf(ctx context.Context, userID string, addresses []string) error {
	for _, address := range addresses {
		if err := tx.runEach(ctx, address, sqlDeleteMovesTo, sqlDeleteEffectsTo); err != nil {
			return err
		}
	}
	if err := tx.run(ctx, sqlDeleteMovesOf, userID); err != nil {
		return err
	}
	return tx.run(ctx, sqlDeleteEffectsOf, userID)
}

// DeleteOldDirectoryEffects deletes at most limit effects of before an instant, and returns how many.
func (tx *Tx) DeleteOldDirectoryEffects(ctx context.Context, before time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldEffects, micros(before), limit)
}

func moveFields(m *doorward.DirectoryMove) []any {
	return []any{&m.EffectID, &m.RunID, &m.GroupID, &m.MemberID, (*storedTime)(&m.At), &m.Joined, &m.Undone}
}

const (
	selectMove = `SELECT m.effect_id, m.run_id, m.group_id, m.member_id, m.at, m.joined, m.undone FROM directory_moves m `

	sqlInsertMove = `INSERT INTO directory_moves (effect_id, run_id, group_id, member_id, at, joined) VALUES ($1, $2, $3, $4, $5, $6)`
	sqlMovesOf    = selectMove + `WHERE m.effect_id = $1 AND m.joined = $2 ORDER BY m.member_id LIMIT $3`
	sqlCountMoves = `SELECT count(*) FROM directory_moves m WHERE m.effect_id = $1 AND m.joined = $2`
	sqlPlacesHeld = `SELECT g.id, g.display_name, p.member_id FROM directory_places p JOIN directory_groups g ON g.id = p.group_id
WHERE g.tenant_id = $1 AND p.member_id IN (` + idsOfMember + `) ORDER BY g.created_at, g.id`
)

// InsertDirectoryMoves records who has joined or left the group by the effect, now.
func (tx *Tx) InsertDirectoryMoves(ctx context.Context, e doorward.DirectoryEffect, joined bool, memberIDs []string) error {
	for _, id := range memberIDs {
		if err := tx.run(ctx, sqlInsertMove, e.ID, e.RunID, e.SubjectID, id, micros(tx.Now), joined); err != nil {
			return err
		}
	}
	return nil
}

// DirectoryMoves returns at most limit people who have joined or left a group by the effect, and how many there are.
func (r Reader) DirectoryMoves(ctx context.Context, effectID string, joined bool, limit int) ([]doorward.DirectoryMove, int, error) {
	some, err := list(ctx, r, moveFields, sqlMovesOf, effectID, joined, limit)
	if err != nil || len(some) < limit {
		return some, len(some), err
	}
	n, err := one(ctx, r, countColumn, sqlCountMoves, effectID, joined)
	return some, n, err
}

// PlacesHeldIn returns the places of the member in groups of all directories of the tenant.
func (r Reader) PlacesHeldIn(ctx context.Context, tenantID, userID string) ([]doorward.DirectoryPlace, error) {
	return list(ctx, r, func(p *doorward.DirectoryPlace) []any { return []any{&p.GroupID, &p.Name, &p.MemberID} }, sqlPlacesHeld, tenantID, userID)
}

const sqlLeftByUndo = selectEffect + `WHERE e.run_id = $1 AND e.undone NOT IN ('', 'done')
  AND NOT EXISTS (SELECT 1 FROM directory_effects o WHERE o.subject_id = e.subject_id AND o.run_id = e.run_id AND (o.at, o.id) < (e.at, e.id))
ORDER BY e.at, e.id LIMIT $2`

// LeftByUndo returns the first effects of the people and groups that the undo of the run has left as they are, at most
// limit.
func (r Reader) LeftByUndo(ctx context.Context, runID string, limit int) ([]doorward.DirectoryEffect, error) {
	return list(ctx, r, effectFields, sqlLeftByUndo, runID, limit)
}

const (
	sqlAskUndo      = `UPDATE directory_runs SET undo_state = 'running', undo_by = $2, undo_at = $3 WHERE id = $1 AND undo_state = ''`
	sqlRunningUndos = selectRun + `WHERE r.undo_state = 'running' ORDER BY r.undo_at, r.id`
	sqlCountUndone  = `UPDATE directory_runs SET undone = undone + $2, left_as_is = left_as_is + $3 WHERE id = $1`
	sqlEndUndo      = `UPDATE directory_runs SET undo_state = 'done' WHERE id = $1 AND undo_state = 'running'`
	// The latest come first: who was made after somebody else's removal may have their name.
	sqlSubjectsToUndo = `SELECT x.subject_id FROM (SELECT e.subject_id AS subject_id, min(e.at) AS at FROM directory_effects e
  WHERE e.run_id = $1 AND e.undone = '' AND substr(e.subject_id, 1, 4) = $2 GROUP BY e.subject_id) x ORDER BY x.at DESC, x.subject_id LIMIT $3`
	// People, also those who have only joined or left groups.
	peopleToUndo = `SELECT e.subject_id AS id, e.at AS at FROM directory_effects e WHERE e.run_id = $1 AND e.undone = '' AND substr(e.subject_id, 1, 4) = 'usr_'
  UNION ALL SELECT m.member_id, m.at FROM directory_moves m WHERE m.run_id = $1 AND m.undone = ''`
	sqlPeopleToUndo  = `SELECT x.id FROM (SELECT y.id AS id, min(y.at) AS at FROM (` + peopleToUndo + `) y GROUP BY y.id) x ORDER BY x.at DESC, x.id LIMIT $2`
	sqlCountPeopleIn = `SELECT count(*) FROM (SELECT DISTINCT y.id FROM (` + peopleToUndo + `) y) x`
	sqlGroupsToUndo  = `SELECT DISTINCT m.group_id FROM directory_moves m WHERE m.run_id = $1 AND m.member_id = $2 AND m.undone = '' ORDER BY m.group_id`
	sqlEffectsOf     = selectEffect + `WHERE e.run_id = $1 AND e.subject_id = $2 ORDER BY e.id`
	sqlMarkEffects   = `UPDATE directory_effects SET undone = $3 WHERE run_id = $1 AND subject_id = $2 AND undone = ''`
	sqlMembersToUndo = `SELECT DISTINCT m.group_id, m.member_id FROM directory_moves m WHERE m.run_id = $1 AND m.undone = '' ORDER BY m.group_id, m.member_id LIMIT $2`
	sqlMovesOfMember = selectMove + `WHERE m.run_id = $1 AND m.group_id = $2 AND m.member_id = $3 ORDER BY m.effect_id`
	// Effects that an undo has taken back change nothing any more.
	sqlCountLater = `SELECT count(*) FROM directory_effects e WHERE e.run_id <> $1 AND e.tenant_id = $2 AND (e.subject_id = $3 OR e.user_id = $4 OR e.address = $5)
AND e.at > $6 AND (e.kind = $7 OR e.kind = $8) AND e.undone <> 'done'`
	sqlCountLaterMoves = `SELECT count(*) FROM directory_moves m WHERE m.run_id <> $1 AND m.group_id = $2 AND m.member_id = $3 AND m.at > $4 AND m.undone <> 'done'`
	sqlMarkMoves       = `UPDATE directory_moves SET undone = $4 WHERE run_id = $1 AND group_id = $2 AND member_id = $3 AND undone = ''`
)

// AskDirectoryUndo begins the undo of the run for the account, and reports whether nobody had.
func (tx *Tx) AskDirectoryUndo(ctx context.Context, runID, userID string) (bool, error) {
	return tx.affected(ctx, sqlAskUndo, runID, userID, micros(tx.Now))
}

// RunningDirectoryUndos returns the runs of all tenants whose undo isn't done, the one first that was asked for first.
func (r Reader) RunningDirectoryUndos(ctx context.Context) ([]doorward.DirectoryRun, error) {
	return list(ctx, r, runFields, sqlRunningUndos)
}

// CountUndone adds to the numbers of people and groups that the undo of the run has brought back, and has left as they are.
func (tx *Tx) CountUndone(ctx context.Context, runID string, done, left int) error {
	return tx.run(ctx, sqlCountUndone, runID, done, left)
}

// EndDirectoryUndo marks the undo of the run as done, and reports whether it wasn't before.
func (tx *Tx) EndDirectoryUndo(ctx context.Context, runID string) (bool, error) {
	return tx.affected(ctx, sqlEndUndo, runID)
}

// SubjectsToUndo returns the ids with the prefix of people or groups to which the undo of the run hasn't come yet, the
// latest first, at most limit.
func (r Reader) SubjectsToUndo(ctx context.Context, runID, prefix string, limit int) ([]string, error) {
	return list(ctx, r, textField, sqlSubjectsToUndo, runID, prefix, limit)
}

// PeopleToUndo is SubjectsToUndo for people, with those who have only joined or left groups.
func (r Reader) PeopleToUndo(ctx context.Context, runID string, limit int) ([]string, error) {
	return list(ctx, r, textField, sqlPeopleToUndo, runID, limit)
}

// CountPeopleToUndo counts them all.
func (r Reader) CountPeopleToUndo(ctx context.Context, runID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountPeopleIn, runID)
}

// GroupsToUndo returns the ids of the groups that the person has joined or left by the run, to which its undo hasn't come
// yet.
func (r Reader) GroupsToUndo(ctx context.Context, runID, memberID string) ([]string, error) {
	return list(ctx, r, textField, sqlGroupsToUndo, runID, memberID)
}

// DirectoryEffectsOf returns the effects of the run on a person or a group, the oldest first.
func (r Reader) DirectoryEffectsOf(ctx context.Context, runID, subjectID string) ([]doorward.DirectoryEffect, error) {
	return list(ctx, r, effectFields, sqlEffectsOf, runID, subjectID)
}

// ChangedAgain reports whether a run after that of the effect, the run's last on a person, has had an effect of one of the
// kinds on the same User or account, or on a User with the effect's address, which no undo has taken back.
func (r Reader) ChangedAgain(ctx context.Context, last doorward.DirectoryEffect, userID string, kinds [2]doorward.DirectoryEffectKind) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlCountLater, last.RunID, last.TenantID, last.SubjectID, cmp.Or(userID, last.SubjectID), cmp.Or(last.Address, "none"), micros(last.At), string(kinds[0]), string(kinds[1]))
	return n > 0, err
}

// MovedAgain is ChangedAgain for a member's place in a group.
func (r Reader) MovedAgain(ctx context.Context, last doorward.DirectoryMove) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlCountLaterMoves, last.RunID, last.GroupID, last.MemberID, micros(last.At))
	return n > 0, err
}

// MarkUndone records what the undo of the run has made of its effects on a person or a group.
func (tx *Tx) MarkUndone(ctx context.Context, runID, subjectID string, as doorward.Undone) error {
	return tx.run(ctx, sqlMarkEffects, runID, subjectID, string(as))
}

// MovesToUndo returns groups with the members in them to which the undo of the run hasn't come yet, at most limit.
func (r Reader) MovesToUndo(ctx context.Context, runID string, limit int) ([]doorward.DirectoryMove, error) {
	return list(ctx, r, func(m *doorward.DirectoryMove) []any { return []any{&m.GroupID, &m.MemberID} }, sqlMembersToUndo, runID, limit)
}

// DirectoryMovesOf returns how the member joined and left the group in the run, the oldest first.
func (r Reader) DirectoryMovesOf(ctx context.Context, runID, groupID, memberID string) ([]doorward.DirectoryMove, error) {
	return list(ctx, r, moveFields, sqlMovesOfMember, runID, groupID, memberID)
}

// MarkMoveUndone is MarkUndone for a member's place in a group.
func (tx *Tx) MarkMoveUndone(ctx context.Context, runID, groupID, memberID string, as doorward.Undone) error {
	return tx.run(ctx, sqlMarkMoves, runID, groupID, memberID, string(as))
}

const (
	sqlTellRefused    = `INSERT INTO directory_refusals (hash, connection_id, at) VALUES ($1, $2, $3) ON CONFLICT (hash) DO NOTHING`
	sqlDeleteRefusals = `DELETE FROM directory_refusals WHERE hash IN (SELECT hash FROM directory_refusals WHERE at < $1 ORDER BY at LIMIT $2)`
)

// TellRefused records that somebody is told of an address that a directory has asked for, by the hash of both, and reports
// whether nobody has told them.
func (tx *Tx) TellRefused(ctx context.Context, connectionID string, hash []byte) (bool, error) {
	return tx.affected(ctx, sqlTellRefused, hash, connectionID, micros(tx.Now))
}

// DeleteOldRefusals forgets at most limit of these of before an instant, and returns how many.
func (tx *Tx) DeleteOldRefusals(ctx context.Context, before time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteRefusals, micros(before), limit)
}
