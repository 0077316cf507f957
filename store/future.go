package store

import "context"

// Rows written while the clock was ahead would expire too late. They are treated
// as if they had begun now. $1 is now, $2 is now plus ClockTolerance.
const (
	sqlClampSessions = `UPDATE sessions SET created_at = CASE WHEN created_at > $1 THEN $1 ELSE created_at END,
  last_seen_at = CASE WHEN last_seen_at > $1 THEN $1 ELSE last_seen_at END,
  proved_at = CASE WHEN proved_at > $1 THEN $1 ELSE proved_at END,
  factor_at = CASE WHEN factor_at > $1 THEN $1 ELSE factor_at END,
  password_at = CASE WHEN password_at > $1 THEN $1 ELSE password_at END
WHERE created_at > $2 OR last_seen_at > $2 OR proved_at > $2 OR factor_at > $2 OR password_at > $2 RETURNING token_hash`

	sqlClampInvitations = `UPDATE invitations SET expires_at = $1 + days * 86400000000
WHERE state = 'PENDING' AND expires_at > $2 + days * 86400000000`

	sqlClampResets = `UPDATE resets SET expires_at = $1 + (expires_at - created_at), created_at = $1
WHERE used_at IS NULL AND created_at > $2`

	sqlClampThrottles = `UPDATE throttles SET until = CASE WHEN until > since THEN $1 + (until - since) ELSE until END, since = $1
WHERE since > $2`

	sqlClampMails = `UPDATE mails SET next_at = $1, created_at = $1 WHERE state = 'queued' AND created_at > $2`

	// In microseconds, as doorward.ChallengeLife says.
	sqlClampChallenges = `UPDATE challenges SET ends_at = $1 + CAST(300000000 AS BIGINT) WHERE ends_at > $2 + CAST(300000000 AS BIGINT)`

	sqlClampFactorWords = `UPDATE factor_words SET asked_at = $1, first_mail_at = $1 WHERE asked_at > $2`
	sqlClampFactorCodes = `UPDATE factor_codes SET expires_at = $1 + (expires_at - created_at), created_at = $1
WHERE used_at IS NULL AND created_at > $2`

	sqlClampSetupLinks = `UPDATE setup_links SET ends_at = $1 + (ends_at - created_at), created_at = $1 WHERE created_at > $2`

	sqlClampEndedSignIns = `UPDATE ended_sign_ins SET ended_at = $1 WHERE ended_at > $2`

	sqlClampRememberedBrowsers = `UPDATE devices SET second_at = $1 WHERE second_at > $2`
	sqlClampForgotten          = `UPDATE memberships SET forgotten_at = $1 WHERE forgotten_at > $2`
	sqlClampEnrolments         = `UPDATE factors SET created_at = $1 WHERE confirmed_at IS NULL AND created_at > $2`
	sqlClampDemands            = `UPDATE tenants SET mfa_since = $1 WHERE mfa_since > $2`

	// A daily look that was put off while the clock was ahead would come too late.
	sqlClampDomains = `UPDATE domains SET look_at = CASE WHEN look_at > $2 + 86400000000 THEN $1 + 86400000000 ELSE look_at END,
  checked_at = CASE WHEN checked_at > $1 THEN $1 ELSE checked_at END,
  missing_since = CASE WHEN missing_since > $1 THEN $1 ELSE missing_since END,
  lapsed_at = CASE WHEN lapsed_at > $1 THEN $1 ELSE lapsed_at END
WHERE look_at > $2 + 86400000000 OR checked_at > $2 OR missing_since > $2 OR lapsed_at > $2`

	// A key keeps its lifetime. An end that was edited while the clock was ahead looks like
	// that of a long lifetime, and stays.
	sqlClampAPIKeys = `UPDATE api_keys SET created_at = $1, expires_at = $1 + (expires_at - created_at), ends_at = $1 + (ends_at - created_at),
  rotate_by = $1 + (rotate_by - created_at)
WHERE created_at > $2 AND status <> 'revoked'`

	sqlClampAPIKeyUses = `UPDATE api_keys SET last_used_at = $1 WHERE last_used_at > $2`

	// In microseconds, as doorward.APIKeyGraceHoursMax says.
	sqlClampAPIKeyGraces = `UPDATE api_key_secrets SET ends_at = $1 + 604800000000 WHERE ends_at > $2 + 604800000000`

	// In microseconds, as callMarkLife and callAnswerLife say.
	lifeOfCall    = `CASE WHEN answer IS NULL THEN 4000000 ELSE 86400000000 END`
	sqlClampCalls = `UPDATE idempotency SET expires_at = $1 + ` + lifeOfCall + ` WHERE expires_at > $2 + ` + lifeOfCall
)

// maxAnnounced is how many sessions are announced individually; for more, one
// change invalidates all memory.
const maxAnnounced = 100

// ClampFuture corrects times that lie in the future by more than ClockTolerance:
// of sessions, whose number it returns, and of challenges, remembered browsers, enrolments,
// API keys, set-up links, looks at domains, demands for second factors, words and codes for their reset, invitations, resets, delays after failed attempts,
// queued mails, answers kept for an Idempotency-Key, and of sign-on.
func (tx *Tx) ClampFuture(ctx context.Context) (sessions int, err error) {
	now, beyond := micros(tx.Now), micros(tx.Now.Add(ClockTolerance))
	hashes, err := list(ctx, tx.Reader, bytesColumn, sqlClampSessions, now, beyond)
	if err != nil {
		return 0, err
	}
	if len(hashes) > maxAnnounced {
		tx.announce(ChangeAll, "")
	} else {
		for _, hash := range hashes {
			tx.announce(ChangeSession, SessionSubject(hash))
		}
	}
	for _, query := range []string{sqlClampAPIKeys, sqlClampAPIKeyUses, sqlClampAPIKeyGraces, sqlClampDemands} {
		changed, err := tx.affected(ctx, query, now, beyond)
		if err != nil {
			return 0, err
		}
		if changed {
			tx.announce(ChangeAll, "")
		}
	}
	for _, query := range []string{
		sqlClampInvitations, sqlClampResets, sqlClampThrottles, sqlClampMails, sqlClampCalls,
		sqlClampChallenges, sqlClampFactorWords, sqlClampFactorCodes, sqlClampRememberedBrowsers, sqlClampForgotten, sqlClampEnrolments, sqlClampDomains,
		sqlClampSetupLinks, sqlClampEndedSignIns,
	} {
		if err := tx.run(ctx, query, now, beyond); err != nil {
			return 0, err
		}
	}
	return len(hashes), tx.clampSignOn(ctx, now, beyond)
}
