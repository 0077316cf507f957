package store

import "context"

// Of sign-on, as in ClampFuture: $1 is now, $2 is now plus ClockTolerance.
const (
	// Else nobody would read again for long what the provider says of itself. retry_at needs only to be due.
	sqlClampDiscoveries = `UPDATE connection_parameters SET asked_at = CASE WHEN asked_at > $1 THEN $1 ELSE asked_at END,
  discovered_at = CASE WHEN discovered_at > $1 THEN $1 ELSE discovered_at END,
  failed_at = CASE WHEN failed_at > $1 THEN $1 ELSE failed_at END, failing_since = CASE WHEN failing_since > $1 THEN $1 ELSE failing_since END,
  retry_at = CASE WHEN retry_at > $1 THEN $1 ELSE retry_at END, unknown_at = CASE WHEN unknown_at > $1 THEN $1 ELSE unknown_at END
WHERE asked_at > $2 OR discovered_at > $2 OR failed_at > $2 OR unknown_at > $2`

	// The switch comes before all that sqlClampIdentities makes now: that such an identity counts only makes a
	// person prove the account.
	sqlClampConnections = `UPDATE connections SET last_sign_in_at = CASE WHEN last_sign_in_at > $1 THEN $1 ELSE last_sign_in_at END,
  switched_at = CASE WHEN switched_at > $1 THEN $1 - 1 ELSE switched_at END,
  client_noticed_at = CASE WHEN client_noticed_at > $1 THEN $1 ELSE client_noticed_at END
WHERE last_sign_in_at > $2 OR switched_at > $2 OR client_noticed_at > $2`

	sqlClampIdentities = `UPDATE identities SET created_at = CASE WHEN created_at > $1 THEN $1 ELSE created_at END, last_used_at = $1
WHERE last_used_at > $2`

	sqlClampConnectionSecrets = `UPDATE connection_secrets SET created_at = CASE WHEN created_at > $1 THEN $1 ELSE created_at END,
  last_used_at = CASE WHEN last_used_at > $1 THEN $1 ELSE last_used_at END
WHERE created_at > $2 OR last_used_at > $2`

	// A secret with an end lives as long as it would have.
	sqlClampSCIMSecrets = `UPDATE scim_secrets SET expires_at = CASE WHEN created_at > $2 THEN $1 + (expires_at - created_at) ELSE expires_at END,
  created_at = CASE WHEN created_at > $1 THEN $1 ELSE created_at END, last_used_at = CASE WHEN last_used_at > $1 THEN $1 ELSE last_used_at END
WHERE created_at > $2 OR last_used_at > $2`

	// Else all writes would belong to one run, which can be undone for long.
	sqlClampDirectoryRuns = `UPDATE directory_runs SET began_at = CASE WHEN began_at > $1 THEN $1 ELSE began_at END, last_at = $1 WHERE last_at > $2`

	// A first key signs at once, and each other one as long after it was made as it would have.
	sqlClampConnectionKeys = `UPDATE connection_keys SET signs_from = $1 + (signs_from - created_at), created_at = $1 WHERE created_at > $2`

	// In microseconds, two days: twice keyAhead of app/connection.
	sqlClampConnectionKeyEnds = `UPDATE connection_keys SET ends_at = $1 + 172800000000 WHERE ends_at > $2 + 172800000000`

	// Else the claims of a person would be kept for longer than TestsKept.
	sqlClampConnectionTests = `UPDATE connection_tests SET created_at = $1 WHERE created_at > $2`

	// Else a protocol would keep these entries rather than new ones.
	sqlClampAttemptEntries = `UPDATE connection_attempts SET at = $1 WHERE at > $2`

	// In microseconds, eleven minutes: a sign-in's life, and one for clocks that differ. Cookies of sign-ins from the future
	// are refused until then.
	sqlClampUsedStates = `UPDATE used_states SET ends_at = $1 + CAST(660000000 AS BIGINT) WHERE ends_at > $2 + CAST(660000000 AS BIGINT)`

	// In microseconds, a minute, as long as what was said waits at most; and fifteen: an assertion's life, with what clocks may
	// differ.
	sqlClampSAMLAssertions = `UPDATE saml_assertions SET ends_at = $1 + CAST(900000000 AS BIGINT),
  waits_until = CASE WHEN waits_until > $1 + CAST(60000000 AS BIGINT) THEN $1 + CAST(60000000 AS BIGINT) ELSE waits_until END
WHERE ends_at > $2 + CAST(900000000 AS BIGINT)`

	// A provisional demand keeps its time to be confirmed.
	sqlClampSSOPolicies = `UPDATE sso_policies SET confirm_by = $1 + (confirm_by - changed_at), changed_at = $1 WHERE changed_at > $2`
)

// clampSignOn corrects the times of connections, identities and demands for sign-on.
func (tx *Tx) clampSignOn(ctx context.Context, now, beyond int64) error {
	for _, query := range []string{
		sqlClampDiscoveries, sqlClampConnections, sqlClampIdentities, sqlClampConnectionSecrets, sqlClampSCIMSecrets, sqlClampDirectoryRuns, sqlClampConnectionKeys, sqlClampConnectionKeyEnds,
		sqlClampConnectionTests, sqlClampAttemptEntries, sqlClampUsedStates, sqlClampSAMLAssertions, sqlClampSSOPolicies,
	} {
		if err := tx.run(ctx, query, now, beyond); err != nil {
			return err
		}
	}
	return nil
}
