-- +goose Up

-- A step of its own, since adding the columns locks the table: this reads all events, and takes
-- the locks on the chains at its end.
UPDATE audit_chains SET timed = t.last, latest_at = t.latest, disorder = t.disorder
FROM (SELECT tenant_id, max(seq) AS last, max(latest) AS latest, max(latest - at) AS disorder
  FROM (SELECT tenant_id, seq, at, max(at) OVER (PARTITION BY tenant_id ORDER BY seq) AS latest FROM events) e
  GROUP BY tenant_id) t
WHERE t.tenant_id = audit_chains.tenant_id;
