package console

import (
	"cmp"
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/queue"
	"github.com/doorward/doorward/web/ui"
)

// The filters of the lists of mails and deliveries, as the commands have them.
var (
	operatorMailFilters     = []string{"state", "kind", "to", "tenant"}
	operatorDeliveryFilters = []string{"state", "tenant", "webhook"}
)

// queuePage is what the pages of both queues have. Their lists are read forward only.
type queuePage struct {
	opened
	pager
	States  []string // to choose from; those that wait come first
	Waiting queue.Waiting
}

// State is the state of the rows that are listed.
func (q queuePage) State() string { return cmp.Or(q.Filter.Get("state"), q.States[0]) }

// operatorMails is the list of mails.
type operatorMails struct {
	queuePage
	Kinds []string
	Items []queue.Mail
}

func (h *console) operatorMails(ctx context.Context, c *ui.Call, o opened) (ui.View, error) {
	pages, w, err := readWindow(ctx, c, operatorMailFilters, sorting{})
	if err != nil {
		return ui.View{}, err
	}
	body := operatorMails{queuePage: queuePage{opened: o, pager: pages, States: queue.MailStates}, Kinds: queue.MailKinds()}
	if body.Waiting, err = h.app.Queues.Waits(ctx, queue.Mails); err != nil {
		return ui.View{}, err
	}
	search := queue.MailSearch{State: pages.Filter.Get("state"), Kind: pages.Filter.Get("kind"), To: pages.Filter.Get("to"), TenantID: pages.Filter.Get("tenant")}
	found, err := h.app.Queues.MailPage(ctx, search, w.After, w.Limit)
	if body.Items = found.Items; err == nil {
		err = body.setLinks(ctx, c, len(found.Items), nil, found.Next)
	}
	return badFilter(ui.View{Page: "operatormails", Body: body}, err)
}

// operatorDeliveries is the list of deliveries to webhooks.
type operatorDeliveries struct {
	queuePage
	Items []queuedDelivery
}

// queuedDelivery is a delivery as the list shows it.
type queuedDelivery struct {
	queue.Delivery
	Event string // key of the message about the event; empty for none
}

func (h *console) operatorDeliveries(ctx context.Context, c *ui.Call, o opened) (ui.View, error) {
	pages, w, err := readWindow(ctx, c, operatorDeliveryFilters, sorting{})
	if err != nil {
		return ui.View{}, err
	}
	body := operatorDeliveries{queuePage: queuePage{opened: o, pager: pages, States: queue.DeliveryStates}}
	if body.Waiting, err = h.app.Queues.Waits(ctx, queue.Deliveries); err != nil {
		return ui.View{}, err
	}
	search := queue.DeliverySearch{State: pages.Filter.Get("state"), TenantID: pages.Filter.Get("tenant"), WebhookID: pages.Filter.Get("webhook")}
	found, err := h.app.Queues.DeliveryPage(ctx, search, w.After, w.Limit)
	for _, d := range found.Items {
		body.Items = append(body.Items, queuedDelivery{d, messageKeyOf(d.Type, doorward.Done)})
	}
	if err == nil {
		err = body.setLinks(ctx, c, len(found.Items), nil, found.Next)
	}
	return badFilter(ui.View{Page: "operatordeliveries", Body: body}, err)
}
