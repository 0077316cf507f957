package console

import (
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/app/queue"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

// openedPage is an operator's page, with the acts.
func openedPage(acts ...string) opened {
	by := doorward.OperatorAtTerminal(doorward.Terminal{SystemUser: "root@db1.acme.example", Reason: "ticket 4711"})
	return opened{Page: installation.Page{By: by, Acts: acts, EndsAt: noon.Add(20 * time.Minute)}}
}

// sampledUse is a tenant with some quotas, of which one is used up.
func sampledUse(name string, status doorward.TenantStatus) usedTenant {
	people, keys, changes := int64(5300), int64(20), int64(5000)
	t := doorward.Tenant{ID: "tnt_" + strings.ToLower(name[:4]) + "3yh4n6rj7wd2c5tpae7vkq2m5x", Name: name, Status: status, CreatedAt: noon.AddDate(-1, 0, 0)}
	if t.Status != doorward.TenantClosing {
		t.Quotas = doorward.Quotas{People: &people, APIKeys: &keys, EventsPerDay: &changes}
	} else {
		closed := noon.AddDate(0, 0, -3)
		t.ClosedAt = &closed
	}
	return usedTenant{t, tenant.Use{TenantUse: store.TenantUse{Members: 5213, Invited: 12, APIKeys: 20, Webhooks: 2, Events: 4600}}}
}

func operatorSamples() []uitest.Sample {
	wide := func(page string, body any) ui.View { return ui.View{Page: page, Body: body, Wide: true} }
	all := openedPage(installation.PageActs()...)
	shows := openedPage()
	small := usedTenant{doorward.Tenant{ID: "tnt_small", Name: "Zeta", Status: doorward.TenantActive, CreatedAt: noon}, tenant.Use{TenantUse: store.TenantUse{Members: 1}}}
	capped := small
	capped.Name, capped.Use = "Umbrella", tenant.Use{TenantUse: store.TenantUse{Members: doorward.MaxTotal}, IsCapped: true}
	long := sampledUse("Donaudampfschifffahrtsgesellschaft mit beschränkter Haftung", doorward.TenantFrozen)
	items := []usedTenant{sampledUse("Acme", doorward.TenantActive), long, sampledUse("Globex", doorward.TenantClosing), small, capped}
	list := operatorTenants{opened: all, pager: middlePage(operatorTenantSorting), Statuses: tenantStatuses, Items: items}
	none := operatorTenants{opened: shows, pager: pager{Filter: filters(url.Values{"q": {"nobody"}}), sorting: operatorTenantSorting}, Statuses: tenantStatuses}
	page := operatorTenant{opened: all, usedTenant: items[0]}
	closing := operatorTenant{opened: shows, usedTenant: items[2], DestroyedAt: noon.AddDate(0, 0, 11)}
	frozen := openedPage("thaw")
	frozen.Ended = &ended{Sessions: 41}
	act := func(name string) operatorAct {
		return operatorAct{operatorTenant: operatorTenant{opened: all, usedTenant: items[0], DestroyedAt: noon.AddDate(0, 0, 14)}, Act: name, Sessions: 412, DaysLeft: 14}
	}
	wrong := ui.Frame{Alert: true, Faults: map[string]string{"confirm": uitest.Said("fault.confirm.mismatch")}, Form: url.Values{"confirm": {"acme"}}}
	return []uitest.Sample{
		{Name: "operator", View: wide("operator", list)},
		{Name: "operator-none", View: wide("operator", none)},
		{Name: "operatortenant", View: wide("operatortenant", page)},
		{Name: "operatortenant-closing", View: wide("operatortenant", closing)},
		{Name: "operatortenant-frozen", View: ui.View{Page: "operatortenant", Wide: true, Done: "done.operator.freeze", Body: operatorTenant{opened: frozen, usedTenant: long}}},
		{Name: "operatoract-freeze", View: ui.View{Page: "operatoract", Title: "operator.freeze.title", Body: act("freeze")}},
		{Name: "operatoract-thaw", View: ui.View{Page: "operatoract", Title: "operator.thaw.title", Body: act("thaw")}},
		{Name: "operatoract-close", View: ui.View{Page: "operatoract", Title: "operator.close.title", Body: act("close")}, Frame: wrong},
		{Name: "operatortrail", View: wide("operatortrail", operatorTrail{opened: all, eventTable: sampledTrail(), Actions: []doorward.Action{doorward.KeyCreate}})},
		{Name: "operatortrail-none", View: wide("operatortrail", operatorTrail{opened: shows, eventTable: eventTable{pager: pager{Filter: filters(url.Values{"actor": {"key_none"}})}}})},
		{Name: "operatornodes", View: wide("operatornodes", operatorNodes{opened: all, Differ: true, Nodes: []node{
			{ID: "nod_7vkq2m5x3yh4n6rj7wd2c5tpae", Version: "0.9.0", IsThis: true, Lease: time.Second, SeenAgo: time.Second},
			{ID: "nod_5tqm7x3yh4n6rj7wd2c5tpae7k", IsSilent: true, Lease: time.Second, SeenAgo: 2500 * time.Millisecond, Behind: 1204},
			{ID: "nod_3yh4n6rj7wd2c5tpae7vkq2m5x", Version: "0.9.1", Lease: 1500 * time.Millisecond, SeenAgo: -1},
		}})},
		{Name: "operatormails", View: wide("operatormails", sampledMails(all))},
		{Name: "operatormails-none", View: wide("operatormails", operatorMails{queuePage: queuePage{opened: shows, pager: pager{Filter: filters{}}, States: queue.MailStates}})},
		{Name: "operatordeliveries", View: wide("operatordeliveries", sampledQueuedDeliveries(all))},
	}
}

// sampledQueue is a queue of which a part is paused.
func sampledQueue(o opened, states []string) queuePage {
	return queuePage{opened: o, pager: pager{Filter: filters{}, First: "?", Next: "?cursor=next"}, States: states, Waiting: queue.Waiting{
		Rows: 1204, Since: noon.Add(-3 * time.Hour), Pauses: []store.QueuePause{{Since: noon.Add(-2 * time.Hour), Reason: "the proxy is replaced"}, {Scope: "whk_5tqm7x3yh4n6rj7wd2c5tpae7k", Since: noon.Add(-time.Hour)}},
	}}
}

func sampledMails(o opened) operatorMails {
	return operatorMails{sampledQueue(o, queue.MailStates), queue.MailKinds(), []queue.Mail{
		{ID: "mal_7vkq2m5x3yh4n6rj7wd2c5tpae", Kind: "invitation", To: "ann@acme.example", TenantID: "tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", State: "queued", LastError: "421 4.3.2 mail.acme.example: the service is not available, closing the transmission channel", Tries: 3, QueuedAt: noon.Add(-3 * time.Hour), NextAt: noon.Add(time.Minute)},
		{ID: "mal_5tqm7x3yh4n6rj7wd2c5tpae7k", Kind: "reset", To: "maximiliane-von-und-zu-hohenstein@sigmaringen.example", State: "queued", QueuedAt: noon, NextAt: noon},
		{ID: "mal_3yh4n6rj7wd2c5tpae7vkq2m5x", Kind: "signed_in", To: "ben@acme.example", State: "dropped", Tries: 1, QueuedAt: noon.Add(-time.Hour), NextAt: noon},
	}}
}

func sampledQueuedDeliveries(o opened) operatorDeliveries {
	next := noon.Add(time.Minute)
	row := func(d doorward.WebhookDelivery, tenantID string) queuedDelivery {
		return queuedDelivery{queue.Delivery{WebhookDelivery: d, TenantID: tenantID}, messageKeyOf(d.Type, doorward.Done)}
	}
	return operatorDeliveries{sampledQueue(o, queue.DeliveryStates), []queuedDelivery{
		row(doorward.WebhookDelivery{ID: "dlv_7vkq2m5x3yh4n6rj7wd2c5tpae", WebhookID: "whk_5tqm7x3yh4n6rj7wd2c5tpae7k", Type: doorward.UserInvite, State: doorward.DeliveryPending, NextAt: &next, CreatedAt: noon.Add(-time.Hour), Attempts: []doorward.DeliveryAttempt{{At: noon, Status: 503}}}, "tnt_7vkq2m5x3yh4n6rj7wd2c5tpae"),
		row(doorward.WebhookDelivery{ID: "dlv_5tqm7x3yh4n6rj7wd2c5tpae7k", WebhookID: "whk_3yh4n6rj7wd2c5tpae7vkq2m5x", Type: doorward.TenantFreeze, State: doorward.DeliveryGivenUp, CreatedAt: noon.Add(-time.Hour), Attempts: []doorward.DeliveryAttempt{{At: noon, Error: "the connection was refused"}}}, ""),
	}}
}
